"""The spending ledger: what all runs with one recordings folder have spent, and the cap on it.

Before a request is sent, the most that it can cost is reserved; when its answer is there, the
reservation is settled at the actual cost. A request that the provider rejected costs nothing; one
that was sent and whose end is unknown (a timeout, a broken answer) is settled in full, since it may
have been billed. Reservations of a run that was killed stay, in full, until `release` removes them.
So what was spent is never more than the ledger says, and the cap is never crossed, whatever runs at
the same time.

The file is `ledger.jsonl` in the recordings folder. Lines are appended under a lock; when a run
closes the ledger, settled lines are summed up to one line for each model.
"""

import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from pieline.core.errors import UserError
from pieline.core.files import canonical_json
from pieline.llm.locks import LOCK_FOLDER, wait_lock
from pieline.llm.recordings import replace

LEDGER_NAME = "ledger.jsonl"
_ROUNDING = 1e-9


@dataclass
class Spending:
    """What a ledger says, in US dollars by model.

    Attributes:
        settled: known to be spent.
        reserved: of each open reservation: model and most that it can cost.
        requests: settled requests by model.
    """

    settled: dict[str, float] = field(default_factory=dict)
    reserved: dict[str, tuple[str, float]] = field(default_factory=dict)
    requests: dict[str, int] = field(default_factory=dict)

    @property
    def usd(self) -> float:
        """All that is spent or may yet be."""
        return sum(self.settled.values()) + sum(usd for _, usd in self.reserved.values())

    def add(self, line: dict[str, Any]) -> None:
        """Take in one line of the ledger."""
        model, usd = str(line["model"]), float(line["usd"])
        if line["event"] == "reserve":
            self.reserved[line["id"]] = (model, usd)
            return
        self.reserved.pop(line.get("id", ""), None)
        self.settled[model] = self.settled.get(model, 0.0) + usd
        self.requests[model] = self.requests.get(model, 0) + int(line.get("requests", 1))


class Ledger:
    """The ledger of one recordings folder, for one run.

    Args:
        folder: the recordings folder.
        cap_usd: the most that all runs may spend together.
    """

    def __init__(self, folder: Path, cap_usd: float = 0.0) -> None:
        self.path = folder / LEDGER_NAME
        self.cap_usd = cap_usd
        self._lock = folder / LOCK_FOLDER / "ledger.lock"
        self._run, self._count = secrets.token_hex(6), 0
        self._open: dict[str, tuple[str, float]] = {}
        self._spending, self._read = Spending(), 0
        self._stream: BinaryIO | None = None

    def spending(self) -> Spending:
        """What all runs have spent or reserved up to now."""
        with self._locked() as spending:
            return spending

    def reserve(self, model: str, usd: float) -> str | None:
        """Reserve at most `usd` for one request: its id, or null if that could cross the cap."""
        with self._locked() as spending:
            if spending.usd + usd > self.cap_usd + _ROUNDING:
                return None
            self._count += 1
            identity = f"{self._run}-{self._count}"
            self._append({"event": "reserve", "id": identity, "model": model, "usd": usd})
            self._open[identity] = (model, usd)
            return identity

    def settle(self, identity: str, usd: float | None = None) -> None:
        """Replace a reservation by what the request cost (null: all that was reserved)."""
        with self._locked():
            model, reserved = self._open.pop(identity)
            usd = reserved if usd is None else usd
            self._append({"event": "settle", "id": identity, "model": model, "usd": usd})

    def release(self) -> float:
        """Remove every open reservation, and say how many dollars they held.

        For people who know from the provider's bill that killed runs cost nothing; no run may be
        under way.
        """
        with self._locked() as spending:
            held = sum(usd for _, usd in spending.reserved.values())
            spending.reserved.clear()
            self._rewrite(spending)
            return held

    def close(self) -> None:
        """Sum up settled lines, so that the file stays small."""
        with self._locked() as spending:
            if self.path.exists():
                self._rewrite(spending)
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    @contextmanager
    def _locked(self) -> Iterator[Spending]:
        with wait_lock(self._lock):
            self._catch_up()
            yield self._spending

    def _catch_up(self) -> None:
        """Take in what other runs have written since; start anew if one has summed up the file."""
        if self._stream is not None and not self._is_current(self._stream):
            self._stream.close()
            self._stream = None
        if self._stream is None:
            self._spending, self._read = Spending(), 0
            if not self.path.exists():
                return
            # Kept open: the number of an open file is not given to another one.
            self._stream = self.path.open("rb")
        self._stream.seek(self._read)
        data = self._stream.read()
        whole = data[: data.rfind(b"\n") + 1]
        for number, raw in enumerate(whole.splitlines(), 1):
            try:
                self._spending.add(json.loads(raw))
            except (ValueError, KeyError, TypeError):
                raise UserError(
                    f"not a line of the ledger (line {number} from byte {self._read})",
                    where=self.path,
                    mend="correct or delete the line",
                ) from None
        self._read += len(whole)
        if len(whole) < len(data):  # torn by a kill: nothing was sent on its account
            os.truncate(self.path, self._read)

    def _is_current(self, stream: BinaryIO) -> bool:
        """Whether an open file is still the ledger, and has not lost anything that was read."""
        try:
            status = self.path.stat()
        except FileNotFoundError:
            return False
        same = status.st_ino == os.fstat(stream.fileno()).st_ino
        return same and status.st_size >= self._read

    def _append(self, line: dict[str, Any]) -> None:
        data = (canonical_json(line) + "\n").encode("utf-8")
        with self.path.open("ab") as stream:
            stream.write(data)
        self._catch_up()

    def _rewrite(self, spending: Spending) -> None:
        lines: list[dict[str, Any]] = [
            {
                "event": "sum",
                "model": model,
                "usd": round(usd, 9),
                "requests": spending.requests[model],
            }
            for model, usd in sorted(spending.settled.items())
        ]
        lines += [
            {"event": "reserve", "id": identity, "model": model, "usd": usd}
            for identity, (model, usd) in sorted(spending.reserved.items())
        ]
        replace(self.path, "".join(canonical_json(line) + "\n" for line in lines).encode("utf-8"))
