"""Set up the processes of rule scripts (log file, one-line errors) and check and write evidence."""

import atexit
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any

from threadpoolctl import threadpool_limits

from pieline.core.errors import UserError, to_user_error
from pieline.core.evidence import check_evidence, write_evidence

_WATCH_SECONDS = 2.0
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def start_log(path: str) -> None:
    """Copy stderr, including that of child processes, to a log file until this process ends.

    Also prints an uncaught `UserError` or `OSError` as one line without a traceback. If the
    environment variable `PIELINE_SNAKEMAKE` contains Snakemake's process id, also ends this process
    when Snakemake ends.
    """
    # -i keeps tee alive on an interrupt, so that the job's last messages are logged.
    tee = subprocess.Popen(["tee", "-i", path], stdin=subprocess.PIPE, stdout=2)
    assert tee.stdin
    os.dup2(tee.stdin.fileno(), 2)
    tee.stdin.close()
    atexit.register(_end_log, tee)
    if snakemake := os.environ.get("PIELINE_SNAKEMAKE"):
        threading.Thread(target=_end_with, args=(int(snakemake),), daemon=True).start()
    sys.excepthook = _print_error


def start_job(snakemake: Any) -> None:
    """Start the log of a script and check the evidence of its inputs.

    Args:
        snakemake: Global variable `snakemake` of the script.
    """
    start_log(snakemake.log[0])
    check_evidence(snakemake.input)


def finish_job(snakemake: Any) -> None:
    """Write the evidence of a script's outputs and of all inputs of its rule."""
    write_evidence(snakemake.output.evidence, files=snakemake.output, made_from=snakemake.input)


def pin_threads(number: int) -> None:
    """Set the number of threads of OpenMP, BLAS and torch, on which floating-point sums depend.

    Covers libraries that are already loaded, and those that this process and its children load.
    """
    os.environ.update(dict.fromkeys(_THREAD_VARIABLES, str(number)))
    threadpool_limits(number)
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(number)


def optional(files: Sequence[str]) -> str | None:
    """Return the file of an optional input of a rule, or None if the input is empty.

    The input is a list, or a string if the rule names one file.
    """
    return files if isinstance(files, str) else next(iter(files), None)


def _end_with(process: int) -> None:
    """Send SIGTERM to this process when another process has ended.

    Without this, a job whose Snakemake was killed would keep running alongside the next run.
    """
    while True:
        time.sleep(_WATCH_SECONDS)
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            os.kill(os.getpid(), signal.SIGTERM)
            return


def _end_log(tee: "subprocess.Popen[bytes]") -> None:
    """Wait (up to 5 seconds) for tee, so that the log is complete when this process ends."""
    sys.stderr.flush()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    # A child process that outlives the job may keep the pipe open.
    with suppress(subprocess.TimeoutExpired):
        tee.wait(timeout=5)


def _print_error(
    kind: type[BaseException], error: BaseException, traceback: TracebackType | None
) -> None:
    if isinstance(error, OSError) and not isinstance(error, BrokenPipeError):
        error = to_user_error(error)
    if isinstance(error, UserError):
        print(f"error: {error}", file=sys.stderr)
    elif isinstance(error, KeyboardInterrupt):
        print("interrupted", file=sys.stderr)
    else:
        sys.__excepthook__(kind, error, traceback)
