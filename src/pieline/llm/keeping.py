"""Putting answers on the disk before anyone uses them, many with one sync."""

import asyncio

from pieline.llm.answers import Answer
from pieline.llm.questions import Question
from pieline.llm.recordings import Recorder


class Keeper:
    """Group commit: answers that arrive while the disk syncs go with the next sync together."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._waiting: list[tuple[Question, Answer, asyncio.Future[None]]] = []
        self._writer: asyncio.Task[None] | None = None

    async def keep(self, question: Question, answer: Answer) -> None:
        """Return when the answer is on the disk.

        Raises:
            OSError: it cannot be written.
        """
        kept: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((question, answer, kept))
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._write())
        # Shielded: who stops waiting for an answer does not stop it from being kept.
        await asyncio.shield(kept)

    async def finish(self) -> None:
        """Wait until everything is written."""
        if self._writer is not None:
            await self._writer

    async def _write(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting, []
            failure: Exception | None = None
            try:
                pairs = [(question, answer) for question, answer, _ in batch]
                await asyncio.to_thread(self._recorder.append, pairs)
            except Exception as error:
                failure = error
            for _, _, kept in batch:
                if kept.cancelled():
                    continue
                if failure:
                    kept.set_exception(failure)
                else:
                    kept.set_result(None)
