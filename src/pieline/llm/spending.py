"""Record the spending of all runs that share a recordings folder, and enforce the spending cap.

Before a request is sent, its maximum cost is reserved. When its answer is recorded, the reservation
is settled:

- An answer is settled at its actual cost, or at the reserved maximum if the provider reported no
  token counts or impossible token counts. A recorded failure is settled like any answer.
- If a provider reports a cost above the maximum of a request, the request is settled at this
  maximum, and the excess is listed separately. The excess is not part of the total, but counts
  toward the cap: no request is sent once the total and the excess reach the cap.
- A request without a response to record (timeout, 429, 5xx, lost connection) is settled at zero,
  because providers rarely bill unanswered requests. (When such requests were settled at the
  maximum, 49 answers worth $0.013 exhausted a cap of $0.12.) The maximum cost of unanswered
  requests is listed separately as "possibly billed" and counts toward neither the total nor the
  cap.

If a run was killed between recording and settling, the next run settles the recorded answers
(`recover_reservations`), so that the settled amount is always the cost of the recorded answers. All
other reservations of a killed run are kept in full until `release` removes them.

Reservations guarantee that received answers and requests in flight together cost no more than the
cap, even with concurrent runs. The bill can exceed the cap only by the amount "possibly billed" and
by the excess of the requests that were sent before the first excess was reported.

The ledger is `spending.sqlite` in the recordings folder. It uses SQLite's rollback journal, because
a write-ahead log needs memory that all processes share, which the machines of a network file system
do not have. Commits are not synced to the disk, because two syncs per request would slow down every
run. Commits survive a killed process, but a power failure may lose the last requests or damage the
file.
"""

import asyncio
import os
import secrets
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from pieline.core.errors import UserError, pluralize
from pieline.llm.answers import Answer
from pieline.llm.costs import MOST_TOKENS, answer_usd, estimate, largest_count, max_attempt_usd
from pieline.llm.questions import Question
from pieline.llm.recordings import read_responses
from pieline.llm.settings import LLMSettings
from pieline.llm.stopping import Stop
from pieline.models.llm import LLMEntry

LEDGER = "spending.sqlite"
"""Name of the ledger file in the recordings folder."""
_TIMEOUT_S = 300
"""Maximum seconds to wait until other processes have written to the ledger."""
_ROUNDING = 1e-9
"""Tolerance in US dollars for comparisons of sums."""
_TABLES = (
    "CREATE TABLE IF NOT EXISTS settled"
    " (model TEXT PRIMARY KEY, usd REAL NOT NULL, requests INTEGER NOT NULL,"
    " unanswered INTEGER NOT NULL, perhaps_usd REAL NOT NULL)",
    "CREATE TABLE IF NOT EXISTS reserved"
    " (id TEXT PRIMARY KEY, model TEXT NOT NULL, usd REAL NOT NULL,"
    " file TEXT NOT NULL, key TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS excess (model TEXT PRIMARY KEY, usd REAL NOT NULL)",
)
_RESERVE = "INSERT INTO reserved VALUES (?, ?, ?, ?, ?)"
_SETTLE = (
    "INSERT INTO settled (model, usd, requests, unanswered, perhaps_usd) VALUES (?, ?, ?, ?, ?)"
    " ON CONFLICT (model) DO UPDATE SET usd = usd + excluded.usd,"
    " requests = requests + excluded.requests, unanswered = unanswered + excluded.unanswered,"
    " perhaps_usd = perhaps_usd + excluded.perhaps_usd"
)
_EXCEED = (
    "INSERT INTO excess VALUES (?, ?) ON CONFLICT (model) DO UPDATE SET usd = usd + excluded.usd"
)


class Reserved(NamedTuple):
    """An open reservation for one request.

    Attributes:
        identity: Identifier of the reservation.
        model: Checkpoint of the queried model.
        usd: Maximum cost of the request in US dollars.
        file: Recordings file in which the answer will be stored, relative to the recordings folder;
            empty once a later run has found that the answer was lost.
        key: Key of the question and, if responses to the question are already recorded, their
            number.
    """

    identity: str
    model: str
    usd: float
    file: str = ""
    key: str = ""


@dataclass(frozen=True)
class Spending:
    """Content of a ledger; amounts are in US dollars, and models are identified by checkpoint.

    Attributes:
        settled: Amount spent, by model.
        requests: Number of settled requests, by model.
        reserved: Open reservations.
        possibly_billed: Maximum cost of the requests that ended without an answer, by model; not
            part of any total.
        unanswered: Number of requests that ended without an answer, by model.
        excess: Cost that providers reported above the maximum of the requests, by model; not part
            of any total.
    """

    settled: dict[str, float]
    requests: dict[str, int]
    reserved: list[Reserved]
    possibly_billed: dict[str, float]
    unanswered: dict[str, int]
    excess: dict[str, float] = field(default_factory=dict)

    @property
    def held(self) -> float:
        """Maximum cost of the requests with open reservations."""
        return sum(reserved.usd for reserved in self.reserved)

    @property
    def usd(self) -> float:
        """Total amount that was spent or is reserved."""
        return sum(self.settled.values()) + self.held

    @property
    def toward_cap(self) -> float:
        """Amount that counts toward the cap: the total plus the sum of the excesses."""
        return self.usd + sum(self.excess.values())


class Ledger:
    """Ledger of one recordings folder.

    Every method raises `UserError` if the ledger file cannot be read or written.

    Args:
        folder: Recordings folder, which must exist.
        cap_usd: Maximum that all runs together may spend, in US dollars.
    """

    def __init__(self, folder: Path, cap_usd: float = 0.0) -> None:
        self.path = folder / LEDGER
        self.cap_usd = cap_usd
        with self._translate_errors():
            self._database = sqlite3.connect(self.path, _TIMEOUT_S, isolation_level=None)
            # Safe if a process dies; only a power failure could lose the last transactions.
            self._database.execute("PRAGMA synchronous = OFF")
        with self._transaction() as database:
            for statement in _TABLES:
                database.execute(statement)

    def spending(self) -> Spending:
        """Return everything that all runs have spent or reserved so far."""
        with self._transaction() as database:
            settled = database.execute(
                "SELECT model, usd, requests, perhaps_usd, unanswered FROM settled ORDER BY model"
            ).fetchall()
            reserved = database.execute("SELECT * FROM reserved ORDER BY id").fetchall()
            excess = database.execute("SELECT * FROM excess ORDER BY model").fetchall()
        spending = Spending(
            settled={},
            requests={},
            reserved=[Reserved(*row) for row in reserved],
            possibly_billed={},
            unanswered={},
            excess=dict(excess),
        )
        for model, usd, requests, possibly_billed_usd, unanswered_requests in settled:
            spending.settled[model] = usd
            spending.requests[model] = requests
            if unanswered_requests:
                spending.possibly_billed[model] = possibly_billed_usd
                spending.unanswered[model] = unanswered_requests
        return spending

    def reserve(self, model: str, usd: float, *, file: str = "", key: str = "") -> Reserved | None:
        """Reserve `usd` for one request, or return None if the reservation would exceed the cap.

        Args:
            model: Checkpoint of the queried model.
            usd: Maximum cost of the request in US dollars.
            file: Recordings file in which the answer will be stored, relative to the recordings
                folder.
            key: See `Reserved`.
        """
        with self._transaction() as database:
            [(spent_usd,)] = database.execute(
                "SELECT (SELECT total(usd) FROM settled) + (SELECT total(usd) FROM reserved)"
                " + (SELECT total(usd) FROM excess)"
            )
            if spent_usd + usd > self.cap_usd + _ROUNDING:
                return None
            reserved = Reserved(secrets.token_hex(8), model, usd, file, key)
            database.execute(_RESERVE, reserved)
        return reserved

    def settle(self, reserved: Reserved, usd: float | None) -> None:
        """Replace a reservation with the actual cost of the request.

        The part of the cost that exceeds the reserved amount is added to the excess.

        Args:
            reserved: Open reservation.
            usd: Cost in US dollars. None for a request without an answer, which is settled at zero
                and whose reserved amount is added to the possibly billed amount.
        """
        settled_usd = min(usd or 0.0, reserved.usd)
        is_unanswered = usd is None
        possibly_billed_usd = reserved.usd if is_unanswered else 0.0
        # Counts as one request; the columns are those of `_SETTLE`.
        row = (reserved.model, settled_usd, 1, int(is_unanswered), possibly_billed_usd)
        with self._transaction() as database:
            database.execute("DELETE FROM reserved WHERE id = ?", (reserved.identity,))
            database.execute(_SETTLE, row)
            if usd and usd > settled_usd + _ROUNDING:
                database.execute(_EXCEED, (reserved.model, usd - settled_usd))

    def open_reservations(self, file: str) -> list[Reserved]:
        """Return the open reservations whose answers would be stored in this recordings file."""
        return [reserved for reserved in self.spending().reserved if reserved.file == file]

    def recover_reservations(
        self, open_reservations: Iterable[Reserved], recorded_usd: Mapping[str, float | None]
    ) -> None:
        """Settle the reservations whose answers are recorded, and clear `file` in the other ones.

        The caller must be the only writer of the recordings file and must not have asked a question
        yet, so that a recorded answer belongs to the open reservation with the same key.

        Args:
            open_reservations: Open reservations of one recordings file.
            recorded_usd: Cost in US dollars of each recorded response, by `Reserved.key`; None for
                responses without usable token counts.
        """
        for reserved in open_reservations:
            if reserved.key in recorded_usd:
                usd = recorded_usd[reserved.key]
                self.settle(reserved, reserved.usd if usd is None else usd)
            else:
                # Without a file, no later run settles the reservation: its amount stays reserved.
                with self._transaction() as database:
                    database.execute(
                        "UPDATE reserved SET file = '' WHERE id = ?", (reserved.identity,)
                    )

    def release(self) -> float:
        """Remove all open reservations and return their total in US dollars.

        Call this method only if the provider's bill shows that killed runs cost nothing, and only
        while no run is in progress.
        """
        with self._transaction() as database:
            [(reserved_usd,)] = database.execute("SELECT total(usd) FROM reserved")
            database.execute("DELETE FROM reserved")
        return float(reserved_usd)

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Run the block as one exclusive transaction."""
        with self._translate_errors(), self._database as database:
            database.execute("BEGIN IMMEDIATE")
            yield database

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        """Raise a `UserError` for an error of the database in the block."""
        try:
            yield
        except sqlite3.Error as error:
            hint = "restore or delete the file"
            if isinstance(error, sqlite3.OperationalError):  # for example, the disk is full
                hint = "free disk space, check permissions and run again"
            raise UserError(
                f"cannot record the spending: {error}", where=self.path, hint=hint
            ) from None


def remaining_usd(settings: LLMSettings) -> float:
    """Return the amount left under the cap, in US dollars, without creating a missing ledger."""
    folder = settings.recordings_folder
    spent_usd = Ledger(folder).spending().toward_cap if (folder / LEDGER).exists() else 0.0
    return max(0.0, settings.max_cost_usd - spent_usd)


def move_reservations(folder: Path, old: Path, new: Path) -> None:
    """Assign the open reservations of a recordings file to the file's new path.

    Args:
        folder: Recordings folder.
        old: Old path of the recordings file.
        new: New path of the recordings file.
    """
    if (folder / LEDGER).exists():
        old_name = os.path.relpath(old.resolve(), folder.resolve())
        new_name = os.path.relpath(new.resolve(), folder.resolve())
        with Ledger(folder)._transaction() as database:
            database.execute("UPDATE reserved SET file = ? WHERE file = ?", (new_name, old_name))


class CapReachedError(Exception):
    """Error raised if one more request could exceed the spending cap.

    Attributes:
        usd: Maximum cost of this request in US dollars.
    """

    def __init__(self, usd: float) -> None:
        super().__init__(usd)
        self.usd = usd


class _ImpossibleCount(NamedTuple):
    """Answer whose reported token count is too large to be true.

    Attributes:
        token_count: Largest token count that the provider reported.
        booked_usd: Amount in US dollars that was booked for the answer.
    """

    token_count: int
    booked_usd: float


class _ExceedingCost(NamedTuple):
    """Reported cost in US dollars, higher than the maximum cost of the answer's request.

    Attributes:
        booked_usd: Part of the cost up to the maximum, which was booked.
        excess_usd: Part of the cost above the maximum.
    """

    booked_usd: float
    excess_usd: float


class Budget:
    """Budget for the requests of one run; nothing is reserved for models without prices.

    Args:
        spec: Entry of the model.
        settings: Settings that contain the cap and the recordings folder.
        file: Recordings file of the answers; the caller must be its only writer.
        stop: Stop state of the run, which ends waits.

    Attributes:
        booked_usd: Amount that this run has settled for its answers, in US dollars.
    """

    def __init__(self, spec: LLMEntry, settings: LLMSettings, file: Path, stop: Stop) -> None:
        self._spec, self._cap, self._stop = spec, settings.max_cost_usd, stop
        self._ledger = Ledger(settings.recordings_folder, self._cap) if spec.paid else None
        self._file = os.path.relpath(file.resolve(), settings.recordings_folder.resolve())
        if self._ledger is not None:
            self._recover_killed_run(self._ledger, file)
        self._requests_in_flight = 0
        self._possibly_billed_usd = 0.0
        self.booked_usd = 0.0
        self._booked_without_counts: list[float] = []
        self._impossible_counts: list[_ImpossibleCount] = []
        self._exceeding_costs: list[_ExceedingCost] = []
        self._settled = asyncio.Event()

    def _recover_killed_run(self, ledger: Ledger, file: Path) -> None:
        """Settle the reservations of a killed run for requests whose answers the run recorded."""
        open_reservations = ledger.open_reservations(self._file)
        if not open_reservations:
            return
        recorded_usd = {
            _reservation_key(key, answer.attempt or 0): answer_usd(answer, self._spec)
            for key, responses in read_responses(file).items()
            for answer in responses
        }
        ledger.recover_reservations(open_reservations, recorded_usd)

    async def reserve(self, question: Question, attempt: int = 0) -> Reserved | None:
        """Reserve the maximum cost of one attempt at a question.

        If the cap leaves too little, waits as long as requests in flight may free reserved amounts.

        Args:
            question: Question to ask.
            attempt: Number of recorded responses to the question.

        Returns:
            The reservation, or None if the model has no prices.

        Raises:
            CapReachedError: The attempt could exceed the cap, and no request is in flight.
            UserError: The cost of the question is unbounded.
            StoppedError: The run was stopped during the wait.
        """
        if self._ledger is None:
            return None
        usd = max_attempt_usd(question, self._spec)
        key = _reservation_key(question.key, attempt)
        while True:
            self._settled.clear()
            reserved = self._ledger.reserve(self._spec.checkpoint, usd, file=self._file, key=key)
            if reserved is not None:
                self._requests_in_flight += 1
                return reserved
            if not self._requests_in_flight:
                raise CapReachedError(usd)
            await self._stop.unless_stopped(self._settled.wait())

    def settle(self, reserved: Reserved | None, usd: float | None) -> None:
        """Settle a reservation at the actual cost; None stands for a request without an answer."""
        if self._ledger is None or reserved is None:
            return
        self._requests_in_flight -= 1
        self._ledger.settle(reserved, usd)
        if usd is None:
            self._possibly_billed_usd += reserved.usd
        self._settled.set()

    def settle_answer(self, reserved: Reserved | None, answer: Answer) -> None:
        """Settle a reservation at the cost of its recorded answer (see `answer_usd`)."""
        if reserved is None:
            return
        usd = answer_usd(answer, self._spec)
        if usd is None:
            usd = reserved.usd  # the maximum, because the actual cost is unknown
            token_count = largest_count(answer)
            if token_count > MOST_TOKENS:
                self._impossible_counts.append(_ImpossibleCount(token_count, usd))
            else:
                self._booked_without_counts.append(usd)
        elif usd > reserved.usd + _ROUNDING:
            self._exceeding_costs.append(_ExceedingCost(reserved.usd, usd - reserved.usd))
        self.booked_usd += min(usd, reserved.usd)
        self.settle(reserved, usd)

    def notes(self) -> list[str]:
        """Return a line for each reason why answers were not booked at their reported cost."""
        lines = []
        if self._booked_without_counts:
            answers = pluralize(len(self._booked_without_counts), "answer")
            lines.append(
                f"{answers} without token counts, booked at the maximum of their requests"
                f" (${sum(self._booked_without_counts):.4f})"
            )
        if self._impossible_counts:
            answers = pluralize(len(self._impossible_counts), "answer")
            largest = max(impossible.token_count for impossible in self._impossible_counts)
            booked_usd = sum(impossible.booked_usd for impossible in self._impossible_counts)
            lines.append(
                f"{answers} with impossible token counts (up to {largest}), booked at the maximum"
                f" of their requests (${booked_usd:.4f})"
            )
        if self._exceeding_costs:
            answers = pluralize(len(self._exceeding_costs), "answer")
            booked_usd = sum(cost.booked_usd for cost in self._exceeding_costs)
            excess_usd = sum(cost.excess_usd for cost in self._exceeding_costs)
            lines.append(
                f"{answers} reported to cost more than the maximum of their requests:"
                f" ${booked_usd:.4f} booked, ${excess_usd:.4f} more counted toward the cap"
            )
        return [f"{self._spec.label}: {line}" for line in lines]

    @property
    def possibly_billed(self) -> str:
        """Message suffix that states the possible cost of unanswered requests; empty if it is 0."""
        usd = self._possibly_billed_usd
        return f" (at most ${usd:.4f} more possibly billed without an answer)" if usd else ""

    def explain(
        self, reached: CapReachedError, unanswered: Sequence[Question], total: int
    ) -> UserError:
        """Return an error that states the spending, the remaining cost and a sufficient cap.

        Args:
            reached: Error that ended the run.
            unanswered: Questions that are left to ask.
            total: Number of all questions that the run asks.
        """
        assert self._ledger  # without a ledger there is no cap
        spending = self._ledger.spending()
        possibly_billed_usd = sum(spending.possibly_billed.values())
        excess_usd = sum(spending.excess.values())
        details = ""
        if spending.held:
            details += f", ${spending.held:.4f} of it held by unfinished requests"
        if possibly_billed_usd:
            details += (
                f" (plus at most ${possibly_billed_usd:.4f} possibly billed without an answer)"
            )
        if excess_usd:
            details += f" (plus ${excess_usd:.4f} reported above the maximum of requests)"
        remaining_cost = max(estimate(unanswered, self._spec).usd or 0.0, reached.usd)
        sufficient_cap = spending.toward_cap + remaining_cost
        return UserError(
            f"the spending cap is reached: ${spending.usd:.4f} of ${self._cap:.4f} spent{details};"
            f" {len(unanswered)} of {total} questions are left to ask, for at most about"
            f" ${remaining_cost:.4f}",
            where=self._spec.label,
            hint=f"raise llm.max_cost_usd (about {sufficient_cap:.4f} is enough);"
            " recorded answers are not asked again",
        )


def _reservation_key(question_key: str, attempt: int) -> str:
    """Return the key of a reservation for an attempt at a question (see `Reserved.key`)."""
    return f"{question_key}#{attempt}" if attempt else question_key
