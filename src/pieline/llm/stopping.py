"""Telling a run to stop: by a signal, by a failure, and waits that give way to it."""

import asyncio
import signal
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")


class StoppedError(Exception):
    """The run was told to stop while a question waited for its turn."""


class Stop:
    """Whether a run shall stop, and why."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self.signal: signal.Signals | None = None
        self.failure: Exception | None = None

    @property
    def wanted(self) -> bool:
        """Whether the run shall stop."""
        return self._event.is_set()

    def fail(self, error: Exception) -> None:
        """Stop because of this error; the first one counts."""
        self.failure = self.failure or error
        self._event.set()

    async def wait(self) -> None:
        """Wait until the run shall stop."""
        await self._event.wait()

    async def unless_stopped(self, waiting: Awaitable[T]) -> T:
        """Wait for something, unless the run is stopped first.

        Raises:
            StoppedError: it was.
        """
        task = asyncio.ensure_future(waiting)
        stopping = asyncio.ensure_future(self.wait())
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
        """Stop on the first SIGINT or SIGTERM; on the second one call `at_once` as well."""
        loop = asyncio.get_running_loop()
        watched: list[signal.Signals] = []

        def stop(number: signal.Signals) -> None:
            if self.signal is not None:
                at_once()
            self.signal = number
            self._event.set()

        try:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.add_signal_handler(number, stop, number)
                watched.append(number)
        except (ValueError, RuntimeError, NotImplementedError):
            pass  # not the main thread: its owner handles signals
        try:
            yield
        finally:
            for number in watched:
                loop.remove_signal_handler(number)
