"""Keeping one run within the spending cap while many of its requests are under way."""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

from pieline.core.errors import UserError
from pieline.llm.costs import estimate, usd_at_most, usd_of
from pieline.llm.questions import Question
from pieline.llm.recordings import read_answers
from pieline.llm.settings import LLMSettings
from pieline.llm.spending import Ledger, Reserved
from pieline.llm.stopping import Stop
from pieline.models.llm import LLMEntry


class CapReachedError(Exception):
    """One more request could cross the spending cap."""

    def __init__(self, usd: float) -> None:
        super().__init__(usd)
        self.usd = usd


class Budget:
    """Reserves the most that a request can cost before it is sent.

    Args:
        spec, settings: the model and the cap.
        file: of recordings, in which the answers will be; nobody else writes it meanwhile.
        stop: ends waiting.
    """

    def __init__(self, spec: LLMEntry, settings: LLMSettings, file: Path, stop: Stop) -> None:
        self._spec, self._cap, self._stop = spec, settings.max_cost_usd, stop
        self._ledger = Ledger(settings.recordings_folder, self._cap) if spec.paid else None
        self._file = os.path.relpath(file.resolve(), settings.recordings_folder.resolve())
        if self._ledger is not None and (left := self._ledger.left(self._file)):
            answers = read_answers(file, [reserved.key for reserved in left])
            costs = {key: usd_of(answer, spec) for key, answer in answers.items()}
            self._ledger.take_up(left, costs)
        self._under_way = 0
        self._perhaps_usd = 0.0
        self._settled = asyncio.Event()

    async def reserve(self, question: Question) -> Reserved | None:
        """Reserve for one attempt; waits for requests under way if only they are in the way.

        Raises:
            CapReachedError: no request is under way and this one could still cross the cap.
            UserError: nothing bounds what the question can cost.
            StoppedError: the run was stopped while this waited.
        """
        if self._ledger is None:
            return None
        usd = usd_at_most(question, self._spec)
        while True:
            self._settled.clear()
            reserved = self._ledger.reserve(
                self._spec.checkpoint, usd, file=self._file, key=question.key
            )
            if reserved is not None:
                self._under_way += 1
                return reserved
            if not self._under_way:
                raise CapReachedError(usd)
            await self._stop.unless_stopped(self._settled.wait())

    def settle(self, reserved: Reserved | None, usd: float | None) -> None:
        """Settle a reservation at what the request cost, null for one that has no answer."""
        if self._ledger is not None and reserved is not None:
            self._under_way -= 1
            self._ledger.settle(reserved, usd)
            if usd is None:
                self._perhaps_usd += reserved.usd
            self._settled.set()

    @property
    def perhaps_billed(self) -> str:
        """What requests of this run without an answer may have cost, to be said behind a sum."""
        usd = self._perhaps_usd
        return f" (at most ${usd:.4f} more perhaps billed without an answer)" if usd else ""

    def explain(self, reached: CapReachedError, left: Sequence[Question], asked: int) -> UserError:
        """What was spent, what is left of the questions asked, and how to raise the cap."""
        assert self._ledger  # without one there is no cap to reach
        spending = self._ledger.spending()
        unfinished = (
            f", ${spending.held:.4f} of it held by unfinished requests" if spending.held else ""
        )
        if perhaps := sum(spending.perhaps.values()):
            unfinished += f" (besides at most ${perhaps:.4f} perhaps billed without an answer)"
        about = max(estimate(left, self._spec).usd or 0.0, reached.usd)
        return UserError(
            f"the spending cap is reached: ${spending.usd:.4f} of ${self._cap:.4f} spent"
            f"{unfinished}; {len(left)} of {asked} questions are left to ask, for at most about"
            f" ${about:.4f}",
            where=self._spec.label,
            mend=f"raise llm.max_cost_usd (about {spending.usd + about:.4f} is enough) and run"
            " again, nothing is asked twice",
        )
