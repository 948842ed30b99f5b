"""Whether what the stand-ins of providers billed is what the spending ledger and recordings say.

`python -m pieline.rehearsal.reconcile --help`; a mismatch ends it with status 2.

What can be compared, for each model that costs money, however often anything failed or was killed:

- Each recorded answer is on the bill, with the same tokens.
- What the bill takes for recorded answers is to the cent what the ledger has settled, with what
  recorded answers cost whose reservations are open still (their process was killed in between).
  Whoever asks again for an answer that is recorded, or loses one, has settled more.
- The rest of the bill is for replies that were not whole, or not delivered, or whose process was
  killed before it recorded them. It is at most what the ledger holds for killed processes and calls
  perhaps billed; and no more replies were delivered without being recorded than it has such
  requests.

Of a model that costs nothing the ledger says nothing: only its recordings are compared. All this is
for recordings that were asked for, in mode `record`, since the bill began.
"""

import argparse
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from pieline.core.errors import UserError, number_of, run_command
from pieline.llm.archive import recording_files
from pieline.llm.costs import usd_of
from pieline.llm.recordings import read_lines
from pieline.llm.spending import Ledger, Reserved
from pieline.llm.wire import body_of
from pieline.models.llm import LLMEntry, name_on_the_wire
from pieline.models.registry import load_registry
from pieline.rehearsal.bill import Charge, digest, read_bill

ROUNDING = 1e-6
"""Dollars by which two sums of the same amounts may differ."""


@dataclass(frozen=True)
class Reconciled:
    """One model's bill beside its recordings and the ledger; sums in US dollars.

    Attributes:
        model: as litellm spells it.
        requests: on the bill.
        questions: different ones.
        recorded: answers that are recorded.
        repeated: replies delivered whole beyond the recorded ones.
        billed_usd: the whole bill.
        lost_usd: the part of it for replies that no recording holds.
        ledger_usd: settled in the ledger, with recorded answers whose reservations are open.
        held_usd: in the ledger for requests of killed processes and, as perhaps billed, for those
            without an answer.
        faults: what does not agree.
    """

    model: str
    requests: int
    questions: int
    recorded: int
    repeated: int
    billed_usd: float
    lost_usd: float
    ledger_usd: float
    held_usd: float
    faults: tuple[str, ...]


class _Recorded(NamedTuple):
    """One recorded answer: its question on the bill, its place, and what it has cost."""

    question: str
    place: tuple[str, str]
    tokens: tuple[int | None, int | None]
    usd: float


@dataclass
class _Account:
    """All that is known of one model."""

    charges: list[Charge] = field(default_factory=list)
    recorded: list[_Recorded] = field(default_factory=list)
    reserved: list[Reserved] = field(default_factory=list)
    settled_usd: float = 0.0
    perhaps_usd: float = 0.0
    unanswered: int = 0


def bill_matches(bill: Path, recordings: Path, models: Mapping[str, object]) -> list[Reconciled]:
    """Compare a bill with a folder of recordings and the ledger in it, model by model.

    Args:
        bill: the file of `Providers`.
        recordings: the folder.
        models: the entries of models.yaml.

    Raises:
        UserError: one of the files is damaged.
    """
    entries = {entry.checkpoint: entry for entry in models.values() if isinstance(entry, LLMEntry)}
    accounts: defaultdict[str, _Account] = defaultdict(_Account)
    for charge in read_bill(bill):
        accounts[charge.model].charges.append(charge)
    for path in recording_files(recordings):
        for checkpoint, recorded in _recorded(path, recordings, entries):
            accounts[_litellm_id(checkpoint)].recorded.append(recorded)
    spending = Ledger(recordings).spending()
    for reserved in spending.reserved:
        accounts[_litellm_id(reserved.model)].reserved.append(reserved)
    for checkpoint, usd in spending.settled.items():
        accounts[_litellm_id(checkpoint)].settled_usd += usd
    for checkpoint, usd in spending.perhaps.items():
        accounts[_litellm_id(checkpoint)].perhaps_usd += usd
        accounts[_litellm_id(checkpoint)].unanswered += spending.unanswered[checkpoint]
    return [_reconciled(model, account) for model, account in sorted(accounts.items())]


def verdict(found: Iterable[Reconciled]) -> str:
    """One line on all models."""
    found = list(found)
    faults = [f"{item.model}: {fault}" for item in found for fault in item.faults]
    total = (
        f"{number_of(sum(item.recorded for item in found), 'recorded answer')} to"
        f" {number_of(sum(item.requests for item in found), 'request')},"
        f" ${math.fsum(item.billed_usd for item in found):.2f} billed,"
        f" ${math.fsum(item.lost_usd for item in found):.2f} of it for lost replies,"
        f" ${math.fsum(item.ledger_usd for item in found):.2f} in the ledger"
    )
    if faults:
        return f"the bill and the ledger do not agree ({total}): {'; '.join(faults)}"
    return f"the bill and the ledger agree: {total}"


def _recorded(
    path: Path, folder: Path, entries: Mapping[str, LLMEntry]
) -> Iterable[tuple[str, _Recorded]]:
    """Checkpoint and answer of each line of a file that was asked for."""
    name = path.relative_to(folder).as_posix()
    for line in read_lines(path):
        answer = line.answer()
        if answer.sent is None:
            continue
        question = line.question()
        entry = entries[question.model]
        asked = digest(_litellm_id(question.model), body_of(question, answer.sent))
        tokens = answer.input_tokens, answer.output_tokens
        usd = usd_of(answer, entry) or 0.0
        yield question.model, _Recorded(asked, (name, answer.key), tokens, usd)


def _reconciled(model: str, account: _Account) -> Reconciled:
    charges, recorded = account.charges, account.recorded
    answers = Counter(item.question for item in recorded)
    whole = {charge.question: charge for charge in charges if charge.fault is None}
    delivered = Counter(charge.question for charge in charges if charge.delivered)
    places = {item.place: item for item in recorded}
    unsettled = [
        places[reserved.file, reserved.key]
        for reserved in account.reserved
        if (reserved.file, reserved.key) in places
    ]
    held = [
        reserved for reserved in account.reserved if (reserved.file, reserved.key) not in places
    ]
    repeated = sum((delivered - answers).values())

    billed = math.fsum(charge.usd for charge in charges)
    for_answers = math.fsum(whole[item.question].usd for item in recorded if item.question in whole)
    lost = billed - for_answers
    ledger = account.settled_usd + math.fsum(item.usd for item in unsettled)
    held_usd = math.fsum(reserved.usd for reserved in held) + account.perhaps_usd

    faults = []
    missing = sum(item.question not in whole for item in recorded)
    if missing:
        faults.append(f"{number_of(missing, 'recorded answer')} not on the bill")
    counted = sum(
        item.question in whole
        and item.tokens != (whole[item.question].input_tokens, whole[item.question].output_tokens)
        for item in recorded
    )
    if counted:
        faults.append(f"{number_of(counted, 'recorded answer')} with other tokens than billed")
    if any(charge.usd for charge in charges) or account.settled_usd > 0:
        if abs(for_answers - ledger) > ROUNDING:
            faults.append(f"${for_answers:.6f} billed for recorded answers, ${ledger:.6f} settled")
        if lost > held_usd + ROUNDING:
            faults.append(f"${lost:.6f} billed for lost replies, ${held_usd:.6f} held for them")
        if repeated > len(held) + account.unanswered:
            faults.append(
                f"{number_of(repeated, 'question')} answered again, {len(held)} killed and"
                f" {account.unanswered} failed"
            )
    return Reconciled(
        model=model,
        requests=len(charges),
        questions=len({charge.question for charge in charges}),
        recorded=len(recorded),
        repeated=repeated,
        billed_usd=billed,
        lost_usd=lost,
        ledger_usd=ledger,
        held_usd=held_usd,
        faults=tuple(faults),
    )


def _litellm_id(checkpoint: str) -> str:
    """A checkpoint as litellm spells it: of a local model without what is behind the name."""
    return f"{checkpoint.partition('/')[0]}/{name_on_the_wire(checkpoint)}"


def main() -> None:
    """Print a line on each model and the verdict."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bill", type=Path, required=True, help="what the stand-ins billed, JSONL")
    parser.add_argument("--recordings", type=Path, required=True, help="folder of recordings")
    parser.add_argument("--models", type=Path, required=True, help="models.yaml")
    arguments = parser.parse_args()
    found = bill_matches(arguments.bill, arguments.recordings, load_registry(arguments.models))
    for item in found:
        print(
            f"{item.model}: {number_of(item.questions, 'question')}, {item.recorded} recorded,"
            f" {item.requests} asked, {item.repeated} lost and answered again;"
            f" ${item.billed_usd:.4f} billed, ${item.lost_usd:.4f} of it for lost replies;"
            f" ${item.ledger_usd:.4f} in the ledger"
        )
    if any(item.faults for item in found):
        raise UserError(verdict(found), where=arguments.bill)
    print(verdict(found))


if __name__ == "__main__":
    run_command(main)
