"""Pythons that have imported already: each job of a run on this machine is forked from one.

Most jobs would spend more time on importing than on their work. The command `python` that
`write_command` makes hands its arguments, its environment and its three streams to a server,
waits for the child, and ends as it ended. It waits for a server that is still importing, too;
where there is none or it cannot import, it is the Python that it stands for. There are two
servers, since forking takes the longer the more is loaded, and few jobs load models or ask them.
"""

import array
import atexit
import gc
import marshal
import os
import runpy
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from threadpoolctl import threadpool_limits

from pieline.core.files import write_text

IMPORTED = (
    *("pandas", "matplotlib.pyplot", "jinja2", "scipy.stats", "seqeval.metrics", "rank_bm25"),
    *("sklearn.metrics", "adjustText", "ir_measures", "pytrec_eval", "rapidfuzz.distance"),
    *("matplotlib.backends.backend_agg", "matplotlib.backends.backend_pdf"),
    *("pyarrow.parquet", "fontTools.subset", "pieline.config", "pieline.planned"),
    *("pieline.core.program", "pieline.studies.idiolink.metrics.scores"),
)
"""What the scripts import that takes long."""

IMPORTED_FOR_MODELS = (
    *("torch", "transformers", "sentence_transformers", "pieline.llm.transport"),
    "pieline.studies.idiolink.training.contrastive",
)
"""What those import besides that load models or ask them."""

_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")

WORTH_FORKING = 10
"""Jobs from which on it pays to import once for all."""

_CLIENT = """#!{python} -ISB
# Of all modules those that load at once: this is done for each job.
import _socket as socket, marshal, os, sys
link = socket.socket(socket.AF_UNIX)
name = os.path.basename(sys.argv[1]) if sys.argv[1:] else ""
try:
    if name in {alone!r}:
        raise OSError
    link.connect({address!r} + ".models" * (name in {models!r}))
    if not link.recv(1):
        raise OSError
except OSError:
    os.execv({python!r}, [{python!r}, *sys.argv[1:]])
asked = marshal.dumps([os.getcwd(), dict(os.environ), sys.argv[1:]])
streams = b"".join(number.to_bytes(4, sys.byteorder) for number in range(3))
link.sendmsg([len(asked).to_bytes(4, "big")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, streams)])
link.sendall(asked)
told = link.recv(4)
sys.exit(int.from_bytes(told, "big", signed=True) if told else 1)
"""


def write_command(
    folder: Path, address: Path, *, models: Collection[str] = (), alone: Collection[str] = ()
) -> None:
    """Write the command `python` into a folder that is to stand first on PATH.

    Args:
        folder: for nothing but this command.
        address: the socket of the server; that of the one for models is `address.models`.
        models: file names of scripts that load models or ask them.
        alone: file names of scripts that are not forked, so that their memory can be measured.
    """
    # A first line of more than 127 bytes is cut off by some kernels; nothing mends that.
    write_text(
        folder / "python",
        _CLIENT.format(
            python=sys.executable,
            address=str(address),
            models=sorted(models),
            alone=sorted(alone),
        ),
    )
    (folder / "python").chmod(0o755)


def start(*, models: Collection[str], alone: Collection[str]) -> None:
    """Start the servers, and put their command first on PATH; all end with this process.

    Args:
        models: see `write_command`.
        alone: see `write_command`.
    """
    # A socket's name may have but 107 bytes.
    folder = Path(tempfile.mkdtemp(prefix="python-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    write_command(folder, folder / "socket", models=models, alone=alone)
    os.environ["PATH"] = f"{folder}{os.pathsep}{os.environ['PATH']}"
    spawn([sys.executable, "-P", "-m", __spec__.name], folder / "socket", folder / "socket.models")


def spawn(command: Sequence[str], *addresses: Path) -> "subprocess.Popen[bytes]":
    """Start a server, to whose arguments the listeners at these addresses are added.

    Whoever connects before it serves waits for it, or learns that it has ended.
    """
    listeners = [socket.socket(socket.AF_UNIX) for _ in addresses]
    for listener, address in zip(listeners, addresses, strict=True):
        listener.bind(str(address))
        listener.listen(256)
    numbers = [listener.fileno() for listener in listeners]
    server = subprocess.Popen(
        [*command, *map(str, numbers)], stdin=subprocess.DEVNULL, pass_fds=numbers
    )
    for listener in listeners:
        listener.close()
    return server


def serve_both(listening: int, listening_for_models: int) -> None:
    """Be the server for most scripts, and let a child be that for models; see `serve`."""
    die_with_parent()
    _import(IMPORTED)
    if os.fork():
        os.close(listening_for_models)
        serve(listening, ())
    else:
        os.close(listening)
        serve(listening_for_models, IMPORTED_FOR_MODELS)


def serve(listening: int, imported: Iterable[str]) -> None:
    """Import, then fork a child for each command until the process that started this one ends.

    Args:
        listening: the file descriptor of a socket that listens.
        imported: modules.
    """
    die_with_parent()
    _import(imported)
    listener = socket.socket(fileno=listening)
    # A program that a job starts would else keep it open when this process has gone.
    listener.set_inheritable(False)
    # Or each child would look through all of it, and so copy it.
    gc.freeze()
    wake, woken = socket.socketpair()
    wake.setblocking(False)
    woken.setblocking(False)
    signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    waiting = selectors.DefaultSelector()
    waiting.register(listener, selectors.EVENT_READ)
    waiting.register(woken, selectors.EVENT_READ)
    children: dict[int, socket.socket] = {}
    while True:
        for key, _ in waiting.select():
            if key.fileobj is listener:
                link, _ = listener.accept()
                if (child := _start(link)) is not None:
                    children[child] = link
                    waiting.register(link, selectors.EVENT_READ, child)
            elif key.fileobj is woken:
                with suppress(BlockingIOError):
                    woken.recv(4096)
            else:
                # The command was killed, and nobody waits for its child.
                waiting.unregister(key.fileobj)
                with suppress(ProcessLookupError):
                    os.killpg(key.data, signal.SIGTERM)
        for child in list(children):
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                link = children.pop(child)
                with suppress(KeyError):
                    waiting.unregister(link)
                with suppress(OSError):
                    code = os.waitstatus_to_exitcode(status)
                    link.sendall((code if code >= 0 else 128 - code).to_bytes(4, "big"))
                link.close()


def _import(modules: Iterable[str]) -> None:
    # Threads cannot be forked: each child starts as many as its job has.
    os.environ.update(_ONE_THREAD)
    for module in modules:
        import_module(module)
    if "transformers" in sys.modules:
        # Or the first model that a child loads has it compile a thousand regular expressions.
        conversions: Any = import_module("transformers.conversion_mapping")
        conversions.get_checkpoint_conversion_mapping("bert")


def die_with_parent() -> None:
    """Have the kernel kill this process when the one that started it ends, however it ends."""
    if sys.platform == "linux":
        import ctypes

        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)


def _start(link: socket.socket) -> int | None:
    """Fork a child for the command at the other end; null if that has gone."""
    try:
        link.sendall(b"!")  # serves from now on
        given = _received(link)
    except (OSError, EOFError):
        link.close()
        return None
    command, streams = given
    child = os.fork()
    if not child:
        link.close()
        _be(*command, streams)
    for stream in streams:
        os.close(stream)
    return child


def _be(
    folder: str, environment: dict[str, str], arguments: list[str], streams: list[int]
) -> NoReturn:
    """Be a command, in a child."""
    atexit._clear()
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    die_with_parent()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    try:
        # Read by numerical libraries when they are loaded; the last digits of sums depend on it.
        threads = int(os.environ.get("OMP_NUM_THREADS") or os.cpu_count() or 1)
        if threads > 1:
            threadpool_limits(threads)
        _run(arguments)
    except SystemExit as ending:
        _leave(ending.code)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        _leave(1)
    _leave(0)


def _run(arguments: list[str]) -> None:
    """What Python does with these arguments: a script or a module, and its own."""
    if arguments[:1] == ["-m"]:
        sys.argv = arguments[1:]
        sys.path.insert(0, str(Path.cwd()))
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = arguments
        sys.path.insert(0, str(Path(arguments[0]).parent))
        runpy.run_path(arguments[0], run_name="__main__")


def _leave(code: Any) -> NoReturn:
    """End a child as Python ends, without what the server registered to be done at its end."""
    if isinstance(code, str):
        print(code, file=sys.stderr)
        code = 1
    # What Python does at its end, but for taking everything down, which takes as long as a job.
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code or 0)


def _received(link: socket.socket) -> tuple[tuple[str, dict[str, str], list[str]], list[int]]:
    """Folder, environment and arguments of a command, and its streams.

    Raises:
        EOFError: it ended before it had said all.
    """
    streams = array.array("i")
    head, told, _, _ = link.recvmsg(4, socket.CMSG_LEN(3 * streams.itemsize))
    for level, kind, content in told:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            streams.frombytes(content)
    wanted, body = int.from_bytes(head, "big"), b""
    while len(body) < wanted:
        part = link.recv(wanted - len(body))
        if not part:
            break
        body += part
    if not head or len(body) < wanted:
        for stream in streams:
            os.close(stream)
        raise EOFError
    return marshal.loads(body), list(streams)  # noqa: S302 -- our command, by a socket of ours


if __name__ == "__main__":
    serve_both(*map(int, sys.argv[1:]))
