"""Stop a run on a signal or a failure, and cancel its waits."""

import asyncio
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

GRACE_S = 20.0
"""Seconds between SIGTERM and abandoning the requests in flight; by default, SLURM sends SIGKILL
30 seconds after SIGTERM."""

T = TypeVar("T")


class StoppedError(Exception):
    """The run was stopped while a question was waiting."""


class Stop:
    """Stop state of a run.

    Attributes:
        signal: Last signal received; None if there was none.
        failure: Error that stopped the run; None if there was none.
    """

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self.signal: signal.Signals | None = None
        self.failure: Exception | None = None

    @property
    def requested(self) -> bool:
        """Whether the run must stop."""
        return self._event.is_set()

    def fail(self, error: Exception) -> None:
        """Stop the run because of an error; only the first error is kept."""
        self.failure = self.failure or error
        self._event.set()

    async def unless_stopped(self, waiting: Awaitable[T]) -> T:
        """Return the result of an awaitable, or cancel it if the run is stopped first.

        Raises:
            StoppedError: The run was stopped first.
        """
        task = asyncio.ensure_future(waiting)
        stopping = asyncio.ensure_future(self._event.wait())
        try:
            await asyncio.wait({task, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
            raise StoppedError
        finally:
            task.cancel()
            stopping.cancel()

    @contextmanager
    def on_signals(self, at_once: Callable[[], object]) -> Iterator[None]:
        """Stop the run on the first SIGINT or SIGTERM during the block.

        Calls `at_once` on a second signal, or `GRACE_S` seconds after a first SIGTERM. Has no
        effect outside the main thread.
        """
        loop = asyncio.get_running_loop()

        def stop(number: signal.Signals) -> None:
            if self.signal is not None:
                at_once()
            elif number == signal.SIGTERM:
                loop.call_later(GRACE_S, at_once)
            else:
                print(
                    "stopping after the requests in flight; interrupt again to abandon them",
                    file=sys.stderr,
                )
            self.signal = number
            self._event.set()

        # Only the main thread can handle signals.
        in_main = threading.current_thread() is threading.main_thread()
        numbers = (signal.SIGINT, signal.SIGTERM) if in_main else ()
        for number in numbers:
            loop.add_signal_handler(number, stop, number)
        try:
            yield
        finally:
            for number in numbers:
                loop.remove_signal_handler(number)
