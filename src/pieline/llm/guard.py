"""Run a server that cannot outlive the process that needs it: `guard.py PIPE COMMAND...`.

PIPE is the reading end of a pipe whose only writing end that process holds. At its end of file,
however the process ended, or when the server itself ends, everything in the server's process group
gets SIGTERM, and soon after SIGKILL. A file of its own without imports of ours, so that it starts
at once whatever the server's environment is.
"""

import ctypes
import os
import select
import signal
import subprocess
import sys
import time

GRACE_S = 10.0
"""Seconds between SIGTERM and SIGKILL: some servers never end while a request is running."""

_POLL_S = 0.1
_PR_SET_PDEATHSIG = 1


def main() -> int:
    """Run the server; its exit status."""
    pipe, command = int(sys.argv[1]), sys.argv[2:]
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # A cluster tells all processes of a job to end: the one that asks may finish its answers.
        # A handler and not SIG_IGN, which the server would inherit.
        signal.signal(number, lambda *_: None)
    try:
        server = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=_die_with_parent,  # noqa: PLW1509 - there are no threads here
        )
    except OSError as error:
        print(f"{command[0]}: {error.strerror}", file=sys.stderr)
        return 127
    try:
        while server.poll() is None and not select.select([pipe], [], [], _POLL_S)[0]:
            pass
    finally:
        _end(server)
    return server.returncode


def _die_with_parent() -> None:
    """Should the guard itself be killed, the kernel kills the server (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _end(server: "subprocess.Popen[bytes]") -> None:
    """End what is left of the server's group, which bears its process id."""
    end = time.monotonic() + GRACE_S
    number: int = signal.SIGTERM
    while _signal_group(server.pid, number) and time.monotonic() < end:
        server.poll()  # else it would stay in the group as a zombie
        number = 0
        time.sleep(_POLL_S)
    _signal_group(server.pid, signal.SIGKILL)
    server.wait()


def _signal_group(group: int, number: int) -> bool:
    """Send a signal to a process group; whether anything is left in it."""
    try:
        os.killpg(group, number)
    except OSError:
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
