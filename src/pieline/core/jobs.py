"""What the scripts of rules share: a log file, and user errors in one line."""

import atexit
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType

from pieline.core.errors import UserError, cannot


def start_log(path: str) -> None:
    """Copy stderr, also that of child processes, to a log file until this process ends.

    From now on an uncaught `UserError` or `OSError` is printed as one line, without a traceback.
    """
    # -i: an interrupted job still prints why it ended.
    tee = subprocess.Popen(["tee", "-i", path], stdin=subprocess.PIPE, stdout=2)
    assert tee.stdin
    os.dup2(tee.stdin.fileno(), 2)
    tee.stdin.close()
    atexit.register(_end_log, tee)
    sys.excepthook = _print_error


def optional(files: Sequence[str]) -> str | None:
    """The file of an input that a rule may leave empty."""
    return files[0] if files else None


def _end_log(tee: "subprocess.Popen[bytes]") -> None:
    """Wait until the log is complete, so that it can be read when this process has ended."""
    sys.stderr.flush()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    # A child that outlives the job may keep the pipe open.
    with suppress(subprocess.TimeoutExpired):
        tee.wait(timeout=5)


def _print_error(
    kind: type[BaseException], error: BaseException, traceback: TracebackType | None
) -> None:
    if isinstance(error, OSError) and not isinstance(error, BrokenPipeError):
        error = cannot(error)
    if isinstance(error, UserError):
        print(f"error: {error}", file=sys.stderr)
    elif isinstance(error, KeyboardInterrupt):
        print("interrupted", file=sys.stderr)
    else:
        sys.__excepthook__(kind, error, traceback)
