"""Append-only file with the charges of the providers' stand-in.

Before each reply, a `Charge` is appended in a single write, so that it is not lost if the server is
killed. `{"delivered": 7}` is appended after the complete reply to request 7 (counted from 0) was
sent to a client that was still connected. A restarted server appends to the same file.
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
"""File name of the bill in the server's folder."""

Fault = Literal[
    "429", "500", "502", "503", "529", "hang", "reset", "cut", "broken", "empty", "drip"
]  # fmt: skip
"""Kinds of faults: an error status, no reply (`hang`, `reset`), or an answer that is billed but
lost, because the connection closes midway (`cut`), the JSON is truncated (`broken`), the body is
empty (`empty`), or the body arrives byte by byte and never ends (`drip`)."""

BILLED: frozenset[Fault] = frozenset({"cut", "broken", "empty", "drip"})


@dataclass
class Charge:
    """A request and its cost.

    Attributes:
        provider: Name of the provider in models.yaml.
        model: litellm's id of the model.
        question: Digest of the question (`digest`).
        input_tokens: Billed input tokens.
        output_tokens: Billed output tokens.
        usd: Cost in US dollars, at the prices in models.yaml.
        fault: Fault of the reply; None if the reply has none.
        delivered: Whether the complete reply was sent to a client that was still connected.
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
        """Return the charge as a line of the bill, without `delivered`, which is not known yet."""
        fields = asdict(self)
        del fields["delivered"]
        return canonical_json(fields)


def digest(model: str, body: dict[str, Any]) -> str:
    """Return the SHA-256 digest of litellm's id of the model and the request body."""
    return hashlib.sha256(canonical_json([model, body]).encode("utf-8")).hexdigest()


def read_bill(path: Path) -> list[Charge]:
    """Return the charges in the order of the requests; an empty list if the file is missing.

    Raises:
        UserError: A line is invalid; the message states file and line.
    """
    charges: list[Charge] = []
    # The part after the last newline is incomplete: the server was killed while writing it.
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    for number, line in enumerate(lines, 1):
        try:
            value = json.loads(line)
            if "delivered" in value:
                charges[value["delivered"]].delivered = True
            else:
                charges.append(Charge(**value))
        except (ValueError, TypeError, IndexError):
            raise UserError("not a line of a bill", where=f"{path}:{number}") from None
    return charges


class Bill:
    """Bill of one server, which must be the only process that writes to the file.

    Attributes:
        charges: Charges of all requests, including those before a restart.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
        os.ftruncate(self._handle, path.read_bytes().rfind(b"\n") + 1)
        self.charges = read_bill(path)

    def add(self, charge: Charge) -> int:
        """Append a charge and return its number (from 0)."""
        self.charges.append(charge)
        self._write(charge.line())
        return len(self.charges) - 1

    def delivered(self, number: int) -> None:
        """Record that the complete reply to a request was sent."""
        self.charges[number].delivered = True
        self._write(f'{{"delivered":{number}}}')

    def close(self) -> None:
        """Close the file."""
        os.close(self._handle)

    def _write(self, line: str) -> None:
        os.write(self._handle, f"{line}\n".encode())
