"""Run a server that cannot outlive the process that uses it: `guard.py PIPE COMMAND...`.

PIPE is the file descriptor of the read end of a pipe. Only the process that uses the server holds
the write end, so the write end closes when that process ends for any reason. When the write end
closes or the server exits, the server's process group gets SIGTERM and, after a grace period,
SIGKILL. This file imports nothing from pieline, so that it starts quickly in any environment.
"""

import ctypes
import os
import select
import signal
import subprocess
import sys
import time

GRACE_S = 10.0
"""Seconds between SIGTERM and SIGKILL: some servers never exit while a request is running."""

_NO_SIGNAL = 0
"""Signal number with which the kernel only checks whether the process group exists."""
_POLL_S = 0.1
"""Seconds between two checks of the pipe and the server."""
_PR_SET_PDEATHSIG = 1
"""Constant of Linux's prctl: set the signal that a process gets when its parent dies."""


def main() -> int:
    """Run the server and return its exit status, or 127 if the server cannot be started."""
    pipe, command = int(sys.argv[1]), sys.argv[2:]
    for signal_number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # A cluster signals all processes of a job, but the parent may still be receiving answers.
        # Use a handler instead of SIG_IGN, which the server would inherit.
        signal.signal(signal_number, lambda *_: None)
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
        pipe_is_open = True
        while pipe_is_open and server.poll() is None:
            # The closed pipe is readable; nothing is ever written to it.
            readable, _, _ = select.select([pipe], [], [], _POLL_S)
            pipe_is_open = not readable
    finally:
        _end_group(server)
    return server.returncode


def _die_with_parent() -> None:
    """Have the kernel kill the server when the guard itself is killed (Linux only)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _end_group(server: "subprocess.Popen[bytes]") -> None:
    """Terminate the remaining processes of the server's group, whose id is the server's pid."""
    deadline = time.monotonic() + GRACE_S
    has_processes = _signal_group(server.pid, signal.SIGTERM)
    while has_processes and time.monotonic() < deadline:
        server.poll()  # reap the server, which would otherwise stay in the group as a zombie
        time.sleep(_POLL_S)
        has_processes = _signal_group(server.pid, _NO_SIGNAL)
    _signal_group(server.pid, signal.SIGKILL)
    server.wait()


def _signal_group(group: int, signal_number: int) -> bool:
    """Send a signal to a process group, and return whether the group had processes."""
    try:
        os.killpg(group, signal_number)
    except OSError:
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
