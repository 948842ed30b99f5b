"""Compare the bill of the scripted provider with the recordings and the spending ledger."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from pieline.core.errors import pluralize
from pieline.core.records import Frozen, load_jsonl
from pieline.llm.archive import recording_files
from pieline.llm.recordings import read_lines
from pieline.llm.spending import Ledger
from pieline.models.llm import api_model_name

BILL = "bill.jsonl"
"""File name of the bill in the folder of the stand-ins."""
ROUNDING = 1e-6
"""Tolerance for sums of the same amounts, in US dollars."""


class Charge(Frozen):
    """A request that was answered, and its cost.

    Attributes:
        id: Id of the reply.
        model: Name of the model in the request.
        question: Digest of the request.
        usd: Cost in US dollars.
    """

    id: str
    model: str
    question: str
    usd: float


class Reconciled(NamedTuple):
    """Comparison of a model's bill with its recordings and the ledger.

    Attributes:
        model: Name of the model in requests.
        billed: Number of requests on the bill.
        recorded: Number of recorded answers.
        billed_usd: Total of the bill in US dollars.
        ledger_usd: Amount settled in the ledger in US dollars.
        faults: Descriptions of the disagreements.
    """

    model: str
    billed: int
    recorded: int
    billed_usd: float
    ledger_usd: float
    faults: list[str]


def reconcile(bill: Path, recordings: Path) -> list[Reconciled]:
    """Compare a bill with recordings and their ledger; return one comparison per model.

    Each request on the bill must be one recorded answer: a question that was asked again, or whose
    answer was lost, is billed more often than it is recorded. The only exceptions are requests that
    the ledger lists as open or without an answer, because a process was killed.

    Raises:
        UserError: The bill, a recording or the ledger is damaged.
    """
    charges: dict[str, list[Charge]] = {}
    for charge in load_jsonl(bill, Charge):
        charges.setdefault(charge.model, []).append(charge)
    recorded: dict[str, list[str | None]] = {}
    for path in recording_files(recordings):
        for line in read_lines(path):
            model = api_model_name(line.question().model)
            recorded.setdefault(model, []).append(line.answer().response_id)
    spending = Ledger(recordings).spending()
    killed = [api_model_name(item.model) for item in spending.reserved]

    def in_ledger(sums: Mapping[str, float], model: str) -> float:
        return math.fsum(each for name, each in sums.items() if api_model_name(name) == model)

    return [
        _reconciled(
            model,
            charges.get(model, []),
            recorded.get(model, []),
            settled=in_ledger(spending.settled, model),
            unanswered=killed.count(model) + round(in_ledger(spending.unanswered, model)),
        )
        for model in sorted({*charges, *recorded})
    ]


def _reconciled(
    model: str,
    charges: list[Charge],
    recorded: list[str | None],
    *,
    settled: float,
    unanswered: int,
) -> Reconciled:
    faults = []
    ids = set(recorded)
    # Recordings of local models have no ids.
    answers = [charge for charge in charges if charge.id in ids] if ids != {None} else charges
    if len(answers) < len(recorded):
        faults.append(f"{pluralize(len(recorded) - len(answers), 'recorded answer')} not billed")
    if len(charges) - len(recorded) > unanswered:
        lost = pluralize(len(charges) - len(recorded), "request")
        faults.append(f"{lost} billed but not recorded, {unanswered} killed or failed")
    usd = math.fsum(charge.usd for charge in answers)
    if abs(usd - settled) > ROUNDING:
        faults.append(f"${usd:.6f} billed for recorded answers, ${settled:.6f} in the ledger")
    billed = math.fsum(charge.usd for charge in charges)
    return Reconciled(model, len(charges), len(recorded), billed, settled, faults)
