"""Stop a run on a signal or a failure, and end its waits."""

import asyncio
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

GRACE_S = 20.0
"""Seconds between SIGTERM and abandoning the requests in flight; SLURM kills after 30."""

T = TypeVar("T")


class StoppedError(Exception):
    """The run was stopped while a question was waiting."""


class Stop:
    """The stop state of a run.

    Attributes:
        signal: Last signal received, if any.
        failure: Error that stopped the run, if any.
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
        """Stop because of an error; only the first error is kept."""
        self.failure = self.failure or error
        self._event.set()

    async def unless_stopped(self, waiting: Awaitable[T]) -> T:
        """Await something and return its result.

        Raises:
            StoppedError: If the run is stopped first.
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
        """Stop on the first SIGINT or SIGTERM; call `at_once` on a second one, or `GRACE_S` later.

        Only SIGTERM has a grace period: a user who presses Ctrl-C can press it again.
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
