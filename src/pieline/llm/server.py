"""The OpenAI-compatible server of a local model: a process that ends with this one."""

import http.client
import json
import os
import shlex
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from pieline.core.errors import UserError
from pieline.core.files import read_json, write_json, write_text
from pieline.core.progress import EVERY_S, FIRST_S
from pieline.llm import guard, llama_cpp
from pieline.models.llm import LLMEntry, name_on_the_wire
from pieline.models.servers import SERVERS, own_command
from pieline.models.weights import weights_path

LOOPBACK = "127.0.0.1"
VLLM = "PIELINE_VLLM"
"""Environment variable: what starts vLLM, up to the weights. It needs an environment of its own."""

PORTS_TRIED = 3
"""Another process may take a free port before the server does, which some do after minutes."""

_TAIL_LINES = 3
_TAIL_CHARACTERS = 400
_POLL_S = 0.2
_ENDS_WITHIN_S = 3.0


class _PortTakenError(Exception):
    """Another process was faster."""


class Server:
    """The server of a local model: starts when it is first needed, ends with the block.

    So several tasks can share one start, and none is started where every answer is recorded.

    Args:
        spec: the model.
        log: file for what the server prints (default: one for temporary files, which is kept if the
            server does not start).
    """

    def __init__(self, spec: LLMEntry, log: Path | None = None) -> None:
        self._spec, self._log = spec, log
        self._stack = ExitStack()
        self._served: Served | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
        self._served = None

    def address(self, patience_s: float, say: Callable[[str], None]) -> str:
        """Its address for litellm's `openai/...`.

        Args:
            patience_s: seconds that it may take to start.
            say: told while it starts.

        Raises:
            UserError: it does not start, or the weights are not those of the entry.
        """
        _without_proxy()
        if self._served is None:
            log = self._log
            if log is None:
                handle, name = tempfile.mkstemp(prefix="pieline-", suffix=".log")
                os.close(handle)
                log = Path(name)
            self._served = self._stack.enter_context(serve(self._spec, log, patience_s, say))
            if self._log is None:
                self._stack.callback(log.unlink)
        return f"http://{LOOPBACK}:{self._served.port}/v1"

    def end(self) -> UserError | None:
        """How the server ended by itself, which explains why it gives no answers."""
        return self._served.end() if self._served else None


@dataclass(frozen=True)
class Served:
    """A server that was started.

    Attributes:
        process: its guard.
        port: that it serves on.
        label: of the model.
        log: file to which it prints.
        printed_before: bytes that were in the log before.
    """

    process: "subprocess.Popen[bytes]"
    port: int
    label: str
    log: Path
    printed_before: int

    def await_health(self, patience_s: float, say: Callable[[str], None]) -> None:
        """Wait until it answers; it may end instead, or stay silent.

        Raises:
            _PortTakenError: it ended because another process has its port.
            UserError: it ended for another reason, or is silent for too long.
        """
        begin, told = time.monotonic(), FIRST_S
        while True:
            # First whether it lives: at its port another process may answer.
            status, waited = self.process.poll(), time.monotonic() - begin
            if status is None and _is_healthy(self.port):
                return
            if status is not None and "address already in use" in self._printed().lower():
                raise _PortTakenError
            if status is not None or waited > patience_s:
                what = "is silent" if status is None else f"ended with status {status}"
                raise self._error(f"{what} after {waited:.0f} s")
            if waited > told:
                say(f"{self.label}: its server is starting, {waited:.0f} s gone")
                told += EVERY_S
            time.sleep(_POLL_S)

    def end(self) -> UserError | None:
        """How it ended, if it did."""
        try:
            # What it had started may take a moment longer to end.
            status = self.process.wait(timeout=_ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:
            return None
        return self._error(f"ended with status {status}", "; the same command asks what is missing")

    def _error(self, what: str, mend: str = "") -> UserError:
        lines = [line.strip() for line in self._printed().splitlines() if line.strip()]
        tail = " | ".join(lines[-_TAIL_LINES:])[-_TAIL_CHARACTERS:] or "nothing"
        return UserError(
            f"its server {what}, having said: {tail}",
            where=self.label,
            mend=f"see {self.log}{mend}",
        )

    def _printed(self) -> str:
        with self.log.open("rb") as stream:
            stream.seek(self.printed_before)
            return stream.read().decode("utf-8", "replace")


@contextmanager
def serve(
    spec: LLMEntry, log: Path, patience_s: float, say: Callable[[str], None]
) -> Iterator[Served]:
    """Serve a model's weights by a process of its own while the block runs.

    Neither the process nor anything that it starts outlives this one, however this one ends.

    Args:
        spec: the model.
        log: file to which everything is added that the server prints.
        patience_s: seconds that the server may take to start.
        say: told every 30 seconds that it is still starting.

    Raises:
        UserError: the weights are not those of the entry, or the server does not start; with the
            end of what it printed.
    """
    weights = weights_path(spec).resolve()
    log.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="pieline-") as folder:
        for _ in range(PORTS_TRIED):
            port = _free_port()
            command = command_line(spec, weights, port, Path(folder))
            printed_before = log.stat().st_size if log.exists() else 0
            # Other commands may name files beside the job.
            place = Path(folder) if spec.serves_with == "transformers" else None
            with _guarded(command, place, os.environ | _environment(spec), log) as process:
                served = Served(process, port, spec.label, log, printed_before)
                try:
                    served.await_health(patience_s, say)
                    if not _is_ours(process, port, is_child=spec.serves_with in SERVERS):
                        raise _PortTakenError
                except _PortTakenError:
                    continue
                yield served
                return
    raise UserError(f"{PORTS_TRIED} free ports were taken by others", where=spec.label)


def command_line(spec: LLMEntry, weights: Path, port: int, folder: Path) -> list[str]:
    """What starts a model's server.

    Args:
        spec: the model.
        weights: its GGUF file, or the folder of its weights.
        port: to serve on, of the loopback.
        folder: an empty one in which the server will run; files that it needs are put there.
    """
    name, place = name_on_the_wire(spec.checkpoint), ["--host", LOOPBACK, "--port", str(port)]
    if spec.serves_with == "llama.cpp":
        parameters = {
            "weights": str(weights),
            "name": name,
            "port": port,
            "slots": spec.slots or 1,
            "context_length": spec.context_length,
            "chat_template": spec.chat_template,
            "threads": spec.threads,
            "gpu_layers": spec.gpu_layers or 0,
        }
        return [sys.executable, str(Path(llama_cpp.__file__)), json.dumps(parameters)]
    if spec.serves_with == "transformers":
        # It insists that requests name the model by the very path that it was started with.
        _prepare(weights, folder / name, spec.chat_template)
        start = [sys.executable, "-m", "transformers.cli.transformers", "serve", name]
        return [
            *start,
            *place,
            *("--dtype", str(spec.dtype)),
            *("--device", "cpu" if spec.gpus == 0 else "auto"),
        ]
    if spec.serves_with == "vllm":
        template = []
        if spec.chat_template:
            write_text(folder / "template.jinja", spec.chat_template)
            template = ["--chat-template", str(folder / "template.jinja")]
        return [
            *shlex.split(os.environ.get(VLLM) or "vllm serve"),
            str(weights),
            *place,
            *("--served-model-name", name),
            # Not the sampling that the weights recommend: a request means what it says.
            *("--generation-config", "vllm"),
            *("--dtype", str(spec.dtype)),
            *("--max-model-len", str(spec.context_length)),
            *("--max-num-seqs", str(spec.slots or 1)),
            *("--tensor-parallel-size", str(spec.gpus or 1)),
            *template,
        ]
    return own_command(spec.serves_with, checkpoint=weights, port=port, gpus=spec.gpus or 0)


def _without_proxy() -> None:
    """Have requests to this machine go to no proxy that the environment names."""
    for name in ("no_proxy", "NO_PROXY"):
        named = os.environ.get(name, "")
        if LOOPBACK not in named.split(","):
            os.environ[name] = f"{named},{LOOPBACK}".strip(",")


def _environment(spec: LLMEntry) -> dict[str, str]:
    """What a server is told besides: no network, no statistics, no more threads than granted."""
    quiet = dict.fromkeys(("HF_HUB_OFFLINE", "VLLM_NO_USAGE_STATS", "DO_NOT_TRACK"), "1")
    return quiet | {"OMP_NUM_THREADS": str(spec.threads)}


def _prepare(weights: Path, folder: Path, template: str | None) -> None:
    """A folder of links to the weights, with sampling as the request says it.

    Without `do_sample` transformers is greedy whatever the temperature, and what a checkpoint
    recommends else (top-k, penalties) would be in force though nobody asked for it.
    """
    if folder.exists():
        return  # of an earlier port
    folder.mkdir(parents=True)
    own = folder / "generation_config.json"
    recommended = weights / own.name
    kept = read_json(weights / "config.json")
    if recommended.exists():
        kept |= read_json(recommended)
    tokens = ("bos_token_id", "eos_token_id", "pad_token_id")
    sampling = {"do_sample": True, "temperature": 1.0, "top_p": 1.0, "top_k": 0}
    write_json(own, {name: kept[name] for name in tokens if kept.get(name) is not None} | sampling)
    if template:
        write_text(folder / "chat_template.jinja", template)
    for path in weights.iterdir():
        if not (folder / path.name).exists():
            (folder / path.name).symlink_to(path)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind((LOOPBACK, 0))
        return int(free.getsockname()[1])


@contextmanager
def _guarded(
    command: Sequence[str], folder: Path | None, environment: Mapping[str, str], log: Path
) -> Iterator["subprocess.Popen[bytes]"]:
    """Run a command under a guard (see `guard`), and end it with the block."""
    with ExitStack() as stack:
        reading, writing = os.pipe()
        stack.callback(os.close, reading)
        ending = stack.enter_context(ExitStack())
        ending.callback(os.close, writing)
        with log.open("ab") as stream:
            process = subprocess.Popen(
                [sys.executable, str(Path(guard.__file__)), str(reading), *command],
                pass_fds=[reading],
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
                start_new_session=True,
                cwd=folder,
                env=environment,
            )
        try:
            yield process
        finally:
            ending.close()
            process.wait()


def _is_ours(process: "subprocess.Popen[bytes]", port: int, *, is_child: bool) -> bool:
    """Whether what listens at a port has been started by a process.

    Some servers take their port only after minutes, and another's answers would be recorded.
    What a command of the user's own starts elsewhere (a container) need not be a child: there it is
    enough that no other process is seen to listen.
    """
    import psutil

    def listens(connection: Any) -> bool:
        return bool(connection.status == psutil.CONN_LISTEN and connection.laddr.port == port)

    try:
        guarding = psutil.Process(process.pid)
        for one in (guarding, *guarding.children(recursive=True)):
            if any(map(listens, one.net_connections(kind="tcp"))):
                return True
        others = [] if is_child else psutil.net_connections(kind="tcp")
    except psutil.AccessDenied:  # of processes not our own, on some systems
        return True
    except psutil.NoSuchProcess:
        return False
    return not is_child and all(one.pid is None for one in filter(listens, others))


def _is_healthy(port: int) -> bool:
    """Whether a server takes questions; of one without /health, whether it lists its models."""
    # No urllib: it would go to a proxy that the environment names.
    return _status(port, "/health") == 200 or (
        _status(port, "/health") == 404 and _status(port, "/v1/models") == 200
    )


def _status(port: int, path: str) -> int | None:
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=5)
    with closing(connection), suppress(OSError, http.client.HTTPException):
        connection.request("GET", path)
        return connection.getresponse().status
    return None
