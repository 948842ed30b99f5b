"""Run a server that cannot outlive the process that needs it: `guard.py PIPE COMMAND...`.

PIPE is the file descriptor of the read end of a pipe whose only write end is held by the process
that needs the server. When the write end is closed, however that process ended, or when the server
exits, the server's process group gets SIGTERM and, after a grace period, SIGKILL. This file imports
nothing from pieline, so that it starts quickly in any environment.
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

_POLL_S = 0.1
_PR_SET_PDEATHSIG = 1


def main() -> int:
    """Run the server and return its exit status, or 127 if it cannot be started."""
    pipe, command = int(sys.argv[1]), sys.argv[2:]
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # A cluster signals all processes of a job, but the parent may still be receiving answers.
        # Use a handler instead of SIG_IGN, which the server would inherit.
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
    """Have the kernel kill the server when the guard itself is killed (Linux only)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _end(server: "subprocess.Popen[bytes]") -> None:
    """Terminate the remaining processes of the server's group, whose id is the server's pid."""
    end = time.monotonic() + GRACE_S
    number: int = signal.SIGTERM
    while _signal_group(server.pid, number) and time.monotonic() < end:
        server.poll()  # reap the server, which would otherwise stay in the group as a zombie
        number = 0
        time.sleep(_POLL_S)
    _signal_group(server.pid, signal.SIGKILL)
    server.wait()


def _signal_group(group: int, number: int) -> bool:
    """Send a signal to a process group and return whether it still has processes."""
    try:
        os.killpg(group, number)
    except OSError:
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
