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
    """Error raised in a question that was waiting when the run was stopped."""


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
        waiting_task = asyncio.ensure_future(waiting)
        stop_task = asyncio.ensure_future(self._event.wait())
        try:
            await asyncio.wait({waiting_task, stop_task}, return_when=asyncio.FIRST_COMPLETED)
            if waiting_task.done():
                return waiting_task.result()
            raise StoppedError
        finally:
            waiting_task.cancel()
            stop_task.cancel()

    @contextmanager
    def on_signals(self, abandon_requests: Callable[[], object]) -> Iterator[None]:
        """Stop the run on the first SIGINT or SIGTERM during the block.

        Calls `abandon_requests` on a second signal, or `GRACE_S` seconds after a first SIGTERM. Has
        no effect outside the main thread.
        """
        loop = asyncio.get_running_loop()

        def stop(received: signal.Signals) -> None:
            if self.signal is not None:
                abandon_requests()
            elif received == signal.SIGTERM:
                loop.call_later(GRACE_S, abandon_requests)
            else:
                print(
                    "stopping after the requests in flight; interrupt again to abandon them",
                    file=sys.stderr,
                )
            self.signal = received
            self._event.set()

        # Only the main thread can handle signals.
        is_main_thread = threading.current_thread() is threading.main_thread()
        handled_signals = (signal.SIGINT, signal.SIGTERM) if is_main_thread else ()
        for handled in handled_signals:
            loop.add_signal_handler(handled, stop, handled)
        try:
            yield
        finally:
            for handled in handled_signals:
                loop.remove_signal_handler(handled)
