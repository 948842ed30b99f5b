"""Start the OpenAI-compatible server of a local model as a process that ends with this one."""

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
from pathlib import Path
from typing import Any, Self

from pieline.core.errors import UserError
from pieline.core.files import write_text
from pieline.core.progress import EVERY_S, FIRST_S
from pieline.llm import guard, llama_cpp
from pieline.models.llm import LLMEntry, api_model_name
from pieline.models.llm_weights import weights_path
from pieline.models.servers import SERVERS, custom_command

LOOPBACK = "127.0.0.1"
VLLM = "PIELINE_VLLM"
"""Environment variable with the command that starts vLLM, which needs a Python environment of its
own."""

PORTS_TRIED = 3
"""Number of ports to try, because another process may take a port before a slow server does."""

_TAIL_LINES = 3
_TAIL_CHARACTERS = 400
_POLL_S = 0.2
_ENDS_WITHIN_S = 3.0


class Server:
    """Context manager for the server of a local model.

    The server starts on first use, so it never starts if every answer is recorded, and stops at the
    end of the block. Several tasks can share the server. Neither the server nor its child processes
    outlive this process, however this process ends.

    Args:
        spec: Entry of the model.
        log: File to which the output of the server is appended (default: a temporary file, which
            is kept if the server does not start).
    """

    def __init__(self, spec: LLMEntry, log: Path | None = None) -> None:
        self._spec, self._stack = spec, ExitStack()
        self._log, self._keeps_log = log, log is not None
        self._process: subprocess.Popen[bytes] | None = None
        self._port = self._printed_before = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def address(self, timeout_s: float, report: Callable[[str], None]) -> str:
        """Start the server if necessary, and return the base URL of its OpenAI-compatible API.

        Args:
            timeout_s: Maximum seconds to wait for the server to start.
            report: Callback for progress messages during the start.

        Raises:
            UserError: The weights are missing or do not match the entry, or the server does not
                start; in the latter case, the message contains the end of its output.
        """
        if self._process is None:
            self._process = self._start(timeout_s, report)
        return f"http://{LOOPBACK}:{self._port}/v1"

    def end(self) -> UserError | None:
        """Return an error that explains missing answers if the server has terminated, else None."""
        if self._process is None:
            return None
        try:
            # The child processes of the server may take a moment longer to exit.
            status = self._process.wait(timeout=_ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:
            return None
        return self._error(f"exited with status {status}", "; run again to ask what is missing")

    def _start(self, timeout_s: float, report: Callable[[str], None]) -> "subprocess.Popen[bytes]":
        weights = weights_path(self._spec).resolve()
        if self._log is None:
            handle, name = tempfile.mkstemp(prefix="pieline-", suffix=".log")
            os.close(handle)
            self._log = Path(name)
        self._log.parent.mkdir(parents=True, exist_ok=True)
        folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="pieline-")))
        is_child = self._spec.serves_with in SERVERS
        for _ in range(PORTS_TRIED):
            self._port = _free_port()
            command = command_line(self._spec, weights, self._port, folder)
            self._printed_before = self._log.stat().st_size if self._log.exists() else 0
            with ExitStack() as stack:
                process = stack.enter_context(run_guarded(command, server_environment(), self._log))
                if self._wait_until_healthy(process, timeout_s, report) and _is_ours(
                    process, self._port, is_child=is_child
                ):
                    if not self._keeps_log:
                        self._stack.callback(self._log.unlink)
                    self._stack.enter_context(stack.pop_all())
                    return process
        raise UserError(
            f"other processes took {PORTS_TRIED} free ports before its server did",
            where=self._spec.label,
            hint="run again",
        )

    def _wait_until_healthy(
        self, process: "subprocess.Popen[bytes]", timeout_s: float, report: Callable[[str], None]
    ) -> bool:
        """Wait until the server is ready, and return True; return False if its port was taken.

        Raises:
            UserError: The server terminated for another reason or was not ready in time.
        """
        begin, shown = time.monotonic(), FIRST_S
        while True:
            # Check first that the server is running: another process may answer at its port.
            status, waited = process.poll(), time.monotonic() - begin
            if status is None and _is_healthy(self._port):
                return True
            if status is not None and "address already in use" in self._printed().lower():
                return False
            if status is not None or waited > timeout_s:
                what = "does not answer" if status is None else f"exited with status {status}"
                raise self._error(f"{what} after {waited:.0f} s")
            if waited > shown:
                report(f"{self._spec.label}: its server has been starting for {waited:.0f} s")
                shown += EVERY_S
            time.sleep(_POLL_S)

    def _error(self, what: str, hint: str = "") -> UserError:
        lines = [line.strip() for line in self._printed().splitlines() if line.strip()]
        tail = " | ".join(lines[-_TAIL_LINES:])[-_TAIL_CHARACTERS:] or "nothing"
        return UserError(
            f"its server {what}; its last output: {tail}",
            where=self._spec.label,
            hint=f"see {self._log}{hint}",
        )

    def _printed(self) -> str:
        assert self._log  # the server has started
        return self._log.read_bytes()[self._printed_before :].decode("utf-8", "replace")


def command_line(spec: LLMEntry, weights: Path, port: int, folder: Path) -> list[str]:
    """Return the command line of a model's server.

    Args:
        spec: Entry of the model.
        weights: GGUF file, or folder of the weights.
        port: Port of the loopback interface to serve on.
        folder: Temporary folder for files that the server needs.
    """
    name, place = api_model_name(spec.checkpoint), ["--host", LOOPBACK, "--port", str(port)]
    if spec.serves_with == "llama.cpp":
        parameters = {
            "weights": str(weights),
            "name": name,
            "port": port,
            "slots": spec.slots or 1,
            "context_length": spec.context_length,
            "chat_template": spec.chat_template,
            # Set in jobs to the threads that Snakemake grants.
            "threads": int(os.environ.get("OMP_NUM_THREADS") or 1),
        }
        return [sys.executable, str(Path(llama_cpp.__file__)), json.dumps(parameters)]
    if spec.serves_with != "vllm":
        return custom_command(spec.serves_with, checkpoint=weights, port=port, gpus=spec.gpus or 0)
    command = [*shlex.split(os.environ.get(VLLM) or "vllm serve"), str(weights), *place]
    command += ["--served-model-name", name]
    # Ignore the sampling defaults of the checkpoint, which no request states.
    command += ["--generation-config", "vllm"]
    command += ["--dtype", str(spec.dtype)]
    command += ["--max-model-len", str(spec.context_length)]
    command += ["--max-num-seqs", str(spec.slots or 1)]
    command += ["--tensor-parallel-size", str(spec.gpus or 1)]
    if spec.chat_template:
        write_text(folder / "template.jinja", spec.chat_template)
        command += ["--chat-template", str(folder / "template.jinja")]
    return command


def server_environment() -> dict[str, str]:
    """Return the environment variables of a model's server."""
    # No network access, no telemetry.
    quiet = dict.fromkeys(("HF_HUB_OFFLINE", "VLLM_NO_USAGE_STATS", "DO_NOT_TRACK"), "1")
    # The key of a question does not state batch invariance, so the user's environment must not
    # turn it on.
    return os.environ | quiet | {"VLLM_BATCH_INVARIANT": "0"}


def _free_port() -> int:
    with socket.socket() as free:
        free.bind((LOOPBACK, 0))
        return int(free.getsockname()[1])


@contextmanager
def run_guarded(
    command: Sequence[str], environment: Mapping[str, str], log: Path
) -> Iterator["subprocess.Popen[bytes]"]:
    """Run a command under a guard (see `guard`) until the end of the block.

    Yields the process of the guard.
    """
    reading, writing = os.pipe()
    with os.fdopen(reading), os.fdopen(writing, "w") as ending:
        with log.open("ab") as stream:
            process = subprocess.Popen(
                [sys.executable, str(Path(guard.__file__)), str(reading), *command],
                pass_fds=[reading],
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
                start_new_session=True,
                env=environment,
            )
        try:
            yield process
        finally:
            ending.close()
            process.wait()


def _is_ours(process: "subprocess.Popen[bytes]", port: int, *, is_child: bool) -> bool:
    """Return whether the process that listens on a port is our server.

    Some servers open their port only after minutes; without this check, the answers of another
    process on that port would be recorded. A custom command may start its server in a container, so
    the server need not be a child process (`is_child`): it is enough that no other process is
    visible on the port.
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
    except psutil.AccessDenied:  # for other users' processes, on some systems
        return True
    except psutil.NoSuchProcess:
        return False
    return not is_child and all(one.pid is None for one in filter(listens, others))


def _is_healthy(port: int) -> bool:
    """Return whether a server is ready, according to /health or, without it, /v1/models."""
    # urllib would use a proxy from the environment, so use http.client instead.
    return _status(port, "/health") == 200 or (
        _status(port, "/health") == 404 and _status(port, "/v1/models") == 200
    )


def _status(port: int, path: str) -> int | None:
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=5)
    with closing(connection), suppress(OSError, http.client.HTTPException):
        connection.request("GET", path)
        return connection.getresponse().status
    return None
