"""The spending ledger: what all runs with one recordings folder have spent, and the cap on it.

Before a request is sent, the most that it can cost is reserved; when its answer is recorded, the
reservation is settled at the actual cost (in full if the provider counted no tokens). A request
without a whole answer (a timeout, 429, 5xx, a lost connection, a broken body) is settled at
nothing: providers seldom bill one, and 49 answers worth $0.013 once exhausted a cap of $0.12.
What it may have cost at most stands apart as "possibly billed" and counts towards neither sum nor
cap. If a run was killed between recording and settling, the next run settles the answers that are
recorded (`recover_reservations`): so what is settled is what the recorded answers cost, however
often runs were killed. All other reservations of a killed run stay, in full, until `release`
removes them.

What the cap so guarantees, whatever runs at the same time: the answers that were received and the
requests under way cost no more than the cap. The bill can exceed it by what a provider takes for
requests that it did not answer, which is at most what is "possibly billed".

The ledger is `spending.sqlite` in the recordings folder. It keeps SQLite's rollback journal: a
write-ahead log needs memory that all its users share, which machines on one network file system do
not have. Nothing waits for the disk: what is committed survives a kill of the process, which is all
that a reservation needs, and two syncs a request would slow every run. A power failure may lose the
last requests or damage the file.
"""

import asyncio
import os
import secrets
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from pieline.core.errors import UserError
from pieline.llm.costs import estimate, usd_at_most, usd_of
from pieline.llm.questions import Question
from pieline.llm.recordings import read_answers
from pieline.llm.settings import LLMSettings
from pieline.llm.stopping import Stop
from pieline.models.llm import LLMEntry

LEDGER = "spending.sqlite"
_TIMEOUT_S = 300
_ROUNDING = 1e-9
_TABLES = (
    "CREATE TABLE IF NOT EXISTS settled"
    " (model TEXT PRIMARY KEY, usd REAL NOT NULL, requests INTEGER NOT NULL,"
    " unanswered INTEGER NOT NULL, perhaps_usd REAL NOT NULL)",
    "CREATE TABLE IF NOT EXISTS reserved"
    " (id TEXT PRIMARY KEY, model TEXT NOT NULL, usd REAL NOT NULL,"
    " file TEXT NOT NULL, key TEXT NOT NULL)",
)
_RESERVE = "INSERT INTO reserved VALUES (?, ?, ?, ?, ?)"
_SETTLE = (
    "INSERT INTO settled (model, usd, requests, unanswered, perhaps_usd) VALUES (?, ?, ?, ?, ?)"
    " ON CONFLICT (model) DO UPDATE SET usd = usd + excluded.usd,"
    " requests = requests + excluded.requests, unanswered = unanswered + excluded.unanswered,"
    " perhaps_usd = perhaps_usd + excluded.perhaps_usd"
)


class Reserved(NamedTuple):
    """An open reservation: the most that one request to a model can cost, in US dollars.

    Attributes:
        identity: its own.
        model: the checkpoint.
        usd: the sum.
        file: of recordings, in which the answer will be; empty when it will not come any more.
        key: of the question.
    """

    identity: str
    model: str
    usd: float
    file: str = ""
    key: str = ""


@dataclass(frozen=True)
class Spending:
    """The content of a ledger, in US dollars.

    Attributes:
        settled: known to be spent, by model.
        requests: settled requests by model.
        reserved: open reservations.
        perhaps: by model with requests that ended without an answer, the most that they may have
            cost; part of no sum.
        unanswered: the number of these requests, by model.
    """

    settled: dict[str, float]
    requests: dict[str, int]
    reserved: list[Reserved]
    perhaps: dict[str, float]
    unanswered: dict[str, int]

    @property
    def held(self) -> float:
        """Return the most that unfinished requests have cost."""
        return sum(reserved.usd for reserved in self.reserved)

    @property
    def usd(self) -> float:
        """Return the sum that is spent or reserved."""
        return sum(self.settled.values()) + self.held


class Ledger:
    """The ledger of one recordings folder.

    Every method raises `UserError` if the file cannot be read or written.

    Args:
        folder: the recordings folder, which exists.
        cap_usd: the most that all runs may spend together.
    """

    def __init__(self, folder: Path, cap_usd: float = 0.0) -> None:
        self.path = folder / LEDGER
        self.cap_usd = cap_usd
        with self._translate_errors():
            self._database = sqlite3.connect(self.path, _TIMEOUT_S, isolation_level=None)
            self._database.execute("PRAGMA synchronous = OFF")
        with self._transaction() as database:
            for statement in _TABLES:
                database.execute(statement)

    def spending(self) -> Spending:
        """Return what all runs have spent or reserved up to now."""
        with self._transaction() as database:
            settled = database.execute(
                "SELECT model, usd, requests, perhaps_usd, unanswered FROM settled ORDER BY model"
            ).fetchall()
            reserved = database.execute("SELECT * FROM reserved ORDER BY id").fetchall()
        return Spending(
            {row[0]: row[1] for row in settled},
            {row[0]: row[2] for row in settled},
            [Reserved(*row) for row in reserved],
            {row[0]: row[3] for row in settled if row[4]},
            {row[0]: row[4] for row in settled if row[4]},
        )

    def reserve(self, model: str, usd: float, *, file: str = "", key: str = "") -> Reserved | None:
        """Reserve at most `usd` for one request, or nothing if that could cross the cap.

        Args:
            model: the checkpoint.
            usd: the most that the request can cost.
            file: of recordings, in which the answer will be.
            key: of the question.
        """
        with self._transaction() as database:
            [(spent,)] = database.execute(
                "SELECT (SELECT total(usd) FROM settled) + (SELECT total(usd) FROM reserved)"
            )
            if spent + usd > self.cap_usd + _ROUNDING:
                return None
            reserved = Reserved(secrets.token_hex(8), model, usd, file, key)
            database.execute(_RESERVE, reserved)
        return reserved

    def settle(self, reserved: Reserved, usd: float | None) -> None:
        """Replace a reservation by what the request cost.

        Null is for a request without an answer: it cost nothing, or perhaps all that was reserved.
        """
        without = usd is None
        row = (reserved.model, usd or 0.0, 1, int(without), reserved.usd if without else 0.0)
        with self._transaction() as database:
            database.execute("DELETE FROM reserved WHERE id = ?", (reserved.identity,))
            database.execute(_SETTLE, row)

    def left(self, file: str) -> list[Reserved]:
        """Return the reservations that earlier writers of this file of recordings left open."""
        return [reserved for reserved in self.spending().reserved if reserved.file == file]

    def recover_reservations(
        self, left: Iterable[Reserved], recorded: Mapping[str, float | None]
    ) -> None:
        """Settle the reservations whose answers are recorded; the others lose their file.

        The caller is the only writer of that file and has asked nothing yet. So an open reservation
        that still has its file is of the very request whose answer is recorded, if one is.

        Args:
            left: in one file of recordings.
            recorded: what the answers in it cost, by key; null where nobody counted the tokens.
        """
        for reserved in left:
            if reserved.key in recorded:
                usd = recorded[reserved.key]
                self.settle(reserved, reserved.usd if usd is None else usd)
            else:
                with self._transaction() as database:
                    database.execute(
                        "UPDATE reserved SET file = '' WHERE id = ?", (reserved.identity,)
                    )

    def release(self) -> float:
        """Remove every open reservation, and return the dollars that they held.

        For people who know from the provider's bill that killed runs cost nothing; no run may be
        under way.
        """
        with self._transaction() as database:
            [(held,)] = database.execute("SELECT total(usd) FROM reserved")
            database.execute("DELETE FROM reserved")
        return float(held)

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Run a block as one exclusive transaction."""
        with self._translate_errors(), self._database as database:
            database.execute("BEGIN IMMEDIATE")
            yield database

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            on_disk = isinstance(error, sqlite3.OperationalError)
            raise UserError(
                f"the spending cannot be kept: {error}",
                where=self.path,
                hint="make room, check permissions and run again"
                if on_disk
                else "restore or delete the file",
            ) from None


def left_usd(settings: LLMSettings) -> float:
    """Return the dollars that the cap leaves; makes no ledger where there is none."""
    folder = settings.recordings_folder
    spent = Ledger(folder).spending().usd if (folder / LEDGER).exists() else 0.0
    return max(0.0, settings.max_cost_usd - spent)


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
            self._ledger.recover_reservations(left, costs)
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
    def possibly_billed(self) -> str:
        """Return the possible cost of this run's unanswered requests, as text to follow a sum."""
        usd = self._perhaps_usd
        return f" (at most ${usd:.4f} more possibly billed without an answer)" if usd else ""

    def explain(self, reached: CapReachedError, left: Sequence[Question], asked: int) -> UserError:
        """Return an error that states what is spent and left to ask, and how to raise the cap."""
        assert self._ledger  # without one there is no cap to reach
        spending = self._ledger.spending()
        unfinished = (
            f", ${spending.held:.4f} of it held by unfinished requests" if spending.held else ""
        )
        if perhaps := sum(spending.perhaps.values()):
            unfinished += f" (besides at most ${perhaps:.4f} possibly billed without an answer)"
        about = max(estimate(left, self._spec).usd or 0.0, reached.usd)
        return UserError(
            f"the spending cap is reached: ${spending.usd:.4f} of ${self._cap:.4f} spent"
            f"{unfinished}; {len(left)} of {asked} questions are left to ask, for at most about"
            f" ${about:.4f}",
            where=self._spec.label,
            hint=f"raise llm.max_cost_usd (about {spending.usd + about:.4f} is enough) and run"
            " again, nothing is asked twice",
        )
