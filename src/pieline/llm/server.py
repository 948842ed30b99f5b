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
"""Environment variable with the command that starts vLLM, because vLLM needs a separate Python
environment."""

PORTS_TRIED = 3
"""Number of ports to try: another process may take a port before a slow server uses the port."""

_TAIL_LINES = 3
_TAIL_CHARACTERS = 400
"""Maximum lines and characters of a server's output in an error message."""
_POLL_S = 0.2
_ENDS_WITHIN_S = 3.0
"""Maximum seconds between a failed request and the exit of a server that failed."""


class Server:
    """Context manager for the server of a local model.

    The server starts at the first call of `address`, so it never starts if every answer is
    recorded. The server stops at the end of the block. Several tasks can share the server. Neither
    the server nor its child processes outlive this process, even if this process is killed.

    Args:
        spec: Entry of the model.
        log: File to which the output of the server is appended (default: a temporary file, which
            is kept if the server does not start).
    """

    def __init__(self, spec: LLMEntry, log: Path | None = None) -> None:
        self._spec, self._stack = spec, ExitStack()
        self._log, self._keeps_log = log, log is not None
        self._process: subprocess.Popen[bytes] | None = None
        self._port = 0
        self._log_start = 0  # bytes of the log before the output of this process

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

    def exit_error(self) -> UserError | None:
        """Return an error about the server's exit; None if it is running or was never started."""
        if self._process is None:
            return None
        try:
            # The child processes of the server may take a moment longer to exit.
            status = self._process.wait(timeout=_ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:
            return None
        return self._error(f"exited with status {status}", "; run again to ask what is missing")

    def _start(self, timeout_s: float, report: Callable[[str], None]) -> "subprocess.Popen[bytes]":
        """Start the server at a free port, and return the process of its guard when it is ready.

        See `address` for the parameters and errors.
        """
        weights = weights_path(self._spec).resolve()
        if self._log is None:
            handle, name = tempfile.mkstemp(prefix="pieline-", suffix=".log")
            os.close(handle)
            self._log = Path(name)
        self._log.parent.mkdir(parents=True, exist_ok=True)
        folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="pieline-")))
        must_be_child = self._spec.serves_with in SERVERS
        for _ in range(PORTS_TRIED):
            self._port = _free_port()
            command = command_line(self._spec, weights, self._port, folder)
            self._log_start = self._log.stat().st_size if self._log.exists() else 0
            with ExitStack() as attempt:
                process = attempt.enter_context(
                    run_guarded(command, server_environment(), self._log)
                )
                is_healthy = self._wait_until_healthy(process, timeout_s, report)
                if is_healthy and _is_our_server(process, self._port, must_be_child=must_be_child):
                    if not self._keeps_log:
                        self._stack.callback(self._log.unlink)
                    # Keep the process until this context manager ends.
                    self._stack.enter_context(attempt.pop_all())
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
        start, next_report_s = time.monotonic(), FIRST_S
        while True:
            # Check first that the server is running: another process may answer at its port.
            exit_status = process.poll()
            waited_s = time.monotonic() - start
            if exit_status is None and _is_healthy(self._port):
                return True
            if exit_status is not None:
                if "address already in use" in self._output().lower():
                    return False
                raise self._error(f"exited with status {exit_status} after {waited_s:.0f} s")
            if waited_s > timeout_s:
                raise self._error(f"does not answer after {waited_s:.0f} s")
            if waited_s > next_report_s:
                report(f"{self._spec.label}: its server has been starting for {waited_s:.0f} s")
                next_report_s += EVERY_S
            time.sleep(_POLL_S)

    def _error(self, what: str, hint: str = "") -> UserError:
        """Return an error about the server, with the end of the server's output."""
        lines = [line.strip() for line in self._output().splitlines() if line.strip()]
        tail = " | ".join(lines[-_TAIL_LINES:])[-_TAIL_CHARACTERS:] or "nothing"
        return UserError(
            f"its server {what}; its last output: {tail}",
            where=self._spec.label,
            hint=f"see {self._log}{hint}",
        )

    def _output(self) -> str:
        """Return what the server has printed since its last start."""
        assert self._log  # the server has started
        return self._log.read_bytes()[self._log_start :].decode("utf-8", "replace")


def command_line(spec: LLMEntry, weights: Path, port: int, folder: Path) -> list[str]:
    """Return the command line of a model's server.

    Args:
        spec: Entry of the model.
        weights: GGUF file, or folder of the weights.
        port: Port of the loopback interface to serve on.
        folder: Temporary folder for files that the server needs.
    """
    if spec.serves_with == "llama.cpp":
        return _llama_cpp_command(spec, weights, port)
    if spec.serves_with == "vllm":
        return _vllm_command(spec, weights, port, folder)
    return custom_command(spec.serves_with, checkpoint=weights, port=port, gpus=spec.gpus or 0)


def _llama_cpp_command(spec: LLMEntry, weights: Path, port: int) -> list[str]:
    """Return the command line of `llama_cpp` for a GGUF file."""
    parameters = {
        "weights": str(weights),
        "name": api_model_name(spec.checkpoint),
        "port": port,
        "slots": spec.slots or 1,
        "context_length": spec.context_length,
        "chat_template": spec.chat_template,
        # Set in jobs to the threads that Snakemake grants.
        "threads": int(os.environ.get("OMP_NUM_THREADS") or 1),
    }
    return [sys.executable, str(Path(llama_cpp.__file__)), json.dumps(parameters)]


def _vllm_command(spec: LLMEntry, weights: Path, port: int, folder: Path) -> list[str]:
    """Return the command line of vLLM, and write the chat template of the entry to `folder`."""
    command = [*shlex.split(os.environ.get(VLLM) or "vllm serve"), str(weights)]
    command += ["--host", LOOPBACK, "--port", str(port)]
    command += ["--served-model-name", api_model_name(spec.checkpoint)]
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
    environment = dict(os.environ)
    # No network access, no telemetry.
    for name in ("HF_HUB_OFFLINE", "VLLM_NO_USAGE_STATS", "DO_NOT_TRACK"):
        environment[name] = "1"
    # The key of a question does not state batch invariance, so the user's environment must not
    # turn it on.
    environment["VLLM_BATCH_INVARIANT"] = "0"
    return environment


def _free_port() -> int:
    """Return a port of the loopback interface that no process uses at the moment."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


@contextmanager
def run_guarded(
    command: Sequence[str], environment: Mapping[str, str], log: Path
) -> Iterator["subprocess.Popen[bytes]"]:
    """Run a command under a guard (see `guard`) until the end of the block.

    Yields the process of the guard, whose standard output and error are appended to `log`.
    """
    read_end, write_end = os.pipe()
    with os.fdopen(read_end), os.fdopen(write_end, "w") as held_open:
        with log.open("ab") as stream:
            process = subprocess.Popen(
                [sys.executable, str(Path(guard.__file__)), str(read_end), *command],
                pass_fds=[read_end],
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
                start_new_session=True,
                env=environment,
            )
        try:
            yield process
        finally:
            held_open.close()  # ends the guard and the server
            process.wait()


def _is_our_server(process: "subprocess.Popen[bytes]", port: int, *, must_be_child: bool) -> bool:
    """Return whether the process that listens on a port is our server.

    Some servers open their port only after minutes. Without this check, the answers of another
    process on that port would be recorded.

    Args:
        process: Process of the guard.
        port: Port of the server.
        must_be_child: Whether the server must be a child process. A custom command may start its
            server in a container. It is then enough that no other process is visible on the port.
    """
    import psutil

    def listens(connection: Any) -> bool:
        return bool(connection.status == psutil.CONN_LISTEN and connection.laddr.port == port)

    try:
        guard_process = psutil.Process(process.pid)
        for our_process in (guard_process, *guard_process.children(recursive=True)):
            if any(listens(connection) for connection in our_process.net_connections(kind="tcp")):
                return True
        if must_be_child:
            return False
        connections = psutil.net_connections(kind="tcp")
    except psutil.AccessDenied:  # for other users' processes, on some systems
        return True
    except psutil.NoSuchProcess:
        return False
    # Processes in containers have no visible process id.
    return all(connection.pid is None for connection in connections if listens(connection))


def _is_healthy(port: int) -> bool:
    """Return whether a server is ready, according to /health or, if that is missing, /v1/models."""
    health_status = _get_status(port, "/health")
    if health_status == 404:
        return _get_status(port, "/v1/models") == 200
    return health_status == 200


def _get_status(port: int, path: str) -> int | None:
    """Return the HTTP status of a GET request to a local server; None if there is no response."""
    # urllib would use a proxy from the environment, so use http.client instead.
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=5)
    with closing(connection), suppress(OSError, http.client.HTTPException):
        connection.request("GET", path)
        return connection.getresponse().status
    return None
