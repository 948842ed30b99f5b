"""What the stand-ins of providers bill: a file to which lines are only ever added.

A request has its line, a `Charge`, before its reply leaves, by one write, which outlives a kill of
the server. `{"delivered": 7}` follows when the whole reply to request 7 has gone out to a client
that was still there. A restarted server goes on with the file.
"""

import hashlib
import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from pieline.core.errors import UserError
from pieline.core.files import canonical_json

BILL = "bill.jsonl"
"""The file in the server's folder that lists what it has billed."""

Fault = Literal[
    "429", "500", "502", "503", "529", "hang", "reset", "cut", "broken", "empty", "drip"
]  # fmt: skip
"""What may become of a request: a status of HTTP, no reply at all (`hang`, `reset`), or an answer
that is billed and not had: its connection ends in the middle (`cut`), its JSON does (`broken`),
it has no body (`empty`), or it comes byte by byte and never ends (`drip`)."""

BILLED: frozenset[Fault] = frozenset({"cut", "broken", "empty", "drip"})


@dataclass
class Charge:
    """One request, and what it cost.

    Attributes:
        provider: as in models.yaml.
        model: as litellm spells it.
        question: digest of what was asked (`digest`).
        input_tokens, output_tokens: as billed; 0 for a request that is not.
        usd: US dollars, at the prices in models.yaml.
        fault: what kept the reply from being whole, null if nothing did.
        delivered: whether it was whole and went out to a client that was still there.
    """

    provider: str
    model: str
    question: str
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float = 0.0
    fault: Fault | None = None
    delivered: bool = field(default=False, compare=False)

    def line(self) -> str:
        """The charge as it is written: without what is not known yet."""
        fields = asdict(self)
        del fields["delivered"]
        return canonical_json(fields)


def digest(model: str, body: dict[str, Any]) -> str:
    """Hexadecimal SHA-256 of a question: the model as litellm spells it, and the request's body."""
    return hashlib.sha256(canonical_json([model, body]).encode("utf-8")).hexdigest()


def read_bill(path: Path) -> list[Charge]:
    """All charges, in the order in which the requests came; a missing file has none.

    Raises:
        UserError: the file is no bill; names file and line.
    """
    charges: list[Charge] = []
    # The line after the last line end was being written when the server was killed.
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    for number, line in enumerate(lines, 1):
        try:
            value = json.loads(line)
            if "delivered" in value:
                charges[value["delivered"]].delivered = True
            else:
                charges.append(Charge(**value))
        except (ValueError, TypeError, IndexError):
            raise UserError("no line of a bill", where=f"{path}:{number}") from None
    return charges


class Bill:
    """The bill of one server, which is its only writer.

    Attributes:
        charges: of all requests up to now, also before a restart.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
        os.ftruncate(self._handle, path.read_bytes().rfind(b"\n") + 1)
        self.charges = read_bill(path)

    def add(self, charge: Charge) -> int:
        """Put a request on the bill; its number."""
        self.charges.append(charge)
        self._write(charge.line())
        return len(self.charges) - 1

    def delivered(self, number: int) -> None:
        """Note that the whole reply to a request has gone out."""
        self.charges[number].delivered = True
        self._write(f'{{"delivered":{number}}}')

    def close(self) -> None:
        """Close the file."""
        os.close(self._handle)

    def _write(self, line: str) -> None:
        os.write(self._handle, f"{line}\n".encode())
