"""Whether what the stand-ins of providers billed is what the spending ledger and recordings say.

What can be compared, for each model that costs money, however often anything failed or was killed:

- Each recorded answer is on the bill, with the same tokens.
- What the bill takes for recorded answers is to the cent what the ledger has settled, with what
  recorded answers cost whose reservations are open still (their process was killed in between).
  Whoever asks again for an answer that is recorded, or loses one, has settled more.
- The rest of the bill is for replies that were not whole, or not delivered, or whose process was
  killed before it recorded them. It is at most what the ledger holds for killed processes and calls
  possibly billed; and no more replies were delivered without being recorded than it has such
  requests.

Of a model that costs nothing the ledger says nothing: only its recordings are compared. All this is
for recordings that were asked for, in mode `record`, since the bill began.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from pieline.core.errors import pluralize
from pieline.llm.archive import recording_files
from pieline.llm.costs import answer_usd
from pieline.llm.recordings import read_lines
from pieline.llm.spending import Ledger, Spending
from pieline.llm.wire import restore_body
from pieline.models.llm import LLMEntry, api_model_name
from rehearsal.bill import Charge, digest, read_bill

ROUNDING = 1e-6
"""Dollars by which two sums of the same amounts may differ."""


class Reconciled(NamedTuple):
    """One model's bill beside its recordings and the ledger; sums in US dollars.

    Attributes:
        model: as litellm spells it.
        requests: on the bill.
        questions: different ones.
        recorded: answers that are recorded.
        billed_usd: the whole bill.
        lost_usd: the part of it for replies that no recording holds.
        ledger_usd: settled in the ledger, with recorded answers whose reservations are open.
        faults: what does not agree.
    """

    model: str
    requests: int
    questions: int
    recorded: int
    billed_usd: float
    lost_usd: float
    ledger_usd: float
    faults: Sequence[str]


class _Recorded(NamedTuple):
    """One recorded answer: its question on the bill, file and key, tokens, and its cost."""

    question: str
    place: tuple[str, str]
    tokens: tuple[int | None, int | None]
    usd: float


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
    charges: defaultdict[str, list[Charge]] = defaultdict(list)
    for charge in read_bill(bill):
        charges[charge.model].append(charge)
    recorded: defaultdict[str, list[_Recorded]] = defaultdict(list)
    for path in recording_files(recordings):
        for line in read_lines(path):
            answer, question = line.answer(), line.question()
            if answer.sent:
                model = _litellm_id(question.model)
                asked = digest(model, restore_body(question, answer.sent))
                place = path.relative_to(recordings).as_posix(), answer.key
                tokens = answer.input_tokens, answer.output_tokens
                usd = answer_usd(answer, entries[question.model]) or 0.0
                recorded[model].append(_Recorded(asked, place, tokens, usd))
    spending = Ledger(recordings).spending()
    in_ledger = {
        *spending.settled,
        *spending.possibly_billed,
        *(item.model for item in spending.reserved),
    }
    return [
        _reconciled(model, charges[model], recorded[model], spending)
        for model in sorted({*charges, *recorded, *map(_litellm_id, in_ledger)})
    ]


def verdict(found: Iterable[Reconciled]) -> str:
    """One line on all models."""
    found = list(found)
    faults = [f"{item.model}: {fault}" for item in found for fault in item.faults]
    total = (
        f"{pluralize(sum(item.recorded for item in found), 'recorded answer')} to"
        f" {pluralize(sum(item.requests for item in found), 'request')},"
        f" ${math.fsum(item.billed_usd for item in found):.2f} billed,"
        f" ${math.fsum(item.lost_usd for item in found):.2f} of it for lost replies,"
        f" ${math.fsum(item.ledger_usd for item in found):.2f} in the ledger"
    )
    if faults:
        return f"the bill and the ledger do not agree ({total}): {'; '.join(faults)}"
    return f"the bill and the ledger agree: {total}"


def _reconciled(
    model: str, charges: Sequence[Charge], recorded: Sequence[_Recorded], spending: Spending
) -> Reconciled:
    def in_ledger(sums: Mapping[str, float]) -> float:
        return math.fsum(each for name, each in sums.items() if _litellm_id(name) == model)

    answers = Counter(item.question for item in recorded)
    complete = {charge.question: charge for charge in charges if charge.fault is None}
    delivered = Counter(charge.question for charge in charges if charge.delivered)
    repeated = sum((delivered - answers).values())
    costs = {item.place: item.usd for item in recorded}
    is_open = [item for item in spending.reserved if _litellm_id(item.model) == model]
    unsettled = [item for item in is_open if (item.file, item.key) in costs]
    held = [item for item in is_open if item not in unsettled]

    billed = math.fsum(charge.usd for charge in charges)
    found = [(item, complete.get(item.question)) for item in recorded]
    for_answers = math.fsum(charge.usd for _, charge in found if charge)
    ledger = in_ledger(spending.settled) + math.fsum(
        costs[item.file, item.key] for item in unsettled
    )
    held_usd = math.fsum(item.usd for item in held) + in_ledger(spending.possibly_billed)
    unanswered = round(in_ledger(spending.unanswered))

    faults = []
    if missing := sum(charge is None for _, charge in found):
        faults.append(f"{pluralize(missing, 'recorded answer')} not on the bill")
    if other := sum(
        item.tokens != (charge.input_tokens, charge.output_tokens)
        for item, charge in found
        if charge
    ):
        faults.append(f"{pluralize(other, 'recorded answer')} with other tokens than billed")
    if billed or in_ledger(spending.settled):
        if abs(for_answers - ledger) > ROUNDING:
            faults.append(f"${for_answers:.6f} billed for recorded answers, ${ledger:.6f} settled")
        if billed - for_answers > held_usd + ROUNDING:
            faults.append(
                f"${billed - for_answers:.6f} billed for lost replies,"
                f" ${held_usd:.6f} held for them"
            )
        if repeated > len(held) + unanswered:
            faults.append(
                f"{pluralize(repeated, 'question')} answered again, {len(held)} killed and"
                f" {unanswered} failed"
            )
    return Reconciled(
        model,
        requests=len(charges),
        questions=len({charge.question for charge in charges}),
        recorded=len(recorded),
        billed_usd=billed,
        lost_usd=billed - for_answers,
        ledger_usd=ledger,
        faults=faults,
    )


def _litellm_id(checkpoint: str) -> str:
    """A checkpoint as litellm spells it: of a local model without what is behind the name."""
    return f"{checkpoint.partition('/')[0]}/{api_model_name(checkpoint)}"
