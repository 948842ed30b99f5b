"""Compare the bill of the providers' stand-in with the spending ledger and the recordings.

For each model that costs money, the following must hold regardless of failures and kills:

- Every recorded answer is on the bill, with the same tokens.
- The amount billed for recorded answers equals the amount settled in the ledger plus the cost of
  recorded answers whose reservation is still open (because the process was killed between
  recording and settling). Asking a recorded question again, or losing an answer, would settle more.
- The rest of the bill is for replies that were incomplete, not delivered, or not recorded because
  the process was killed. The amount of this rest is at most the amount that the ledger holds for
  killed processes and possibly billed calls. The number of replies that were delivered but not
  recorded is at most the number of killed and failed requests in the ledger.

For free models, only the recordings are compared. All recordings must have been made in mode
`record` since the start of the bill.
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
"""Tolerance for sums of the same amounts, in US dollars."""


class Reconciled(NamedTuple):
    """Comparison of a model's bill with its recordings and the ledger; amounts in US dollars.

    Attributes:
        model: litellm's id of the model.
        requests: Number of requests on the bill.
        questions: Number of distinct questions.
        recorded: Number of recorded answers.
        billed_usd: Total of the bill.
        lost_usd: Amount billed for replies that are not recorded.
        ledger_usd: Amount settled in the ledger, plus the cost of recorded answers with open
            reservations.
        faults: Descriptions of the disagreements.
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
    """A recorded answer: digest of its question, file and key, tokens, and cost."""

    question: str
    place: tuple[str, str]
    tokens: tuple[int | None, int | None]
    usd: float


def bill_matches(bill: Path, recordings: Path, models: Mapping[str, object]) -> list[Reconciled]:
    """Compare a bill with recordings and their ledger; return one comparison per model.

    Args:
        bill: Path of the bill of `Providers`.
        recordings: Folder of the recordings and the ledger.
        models: Entries of models.yaml.

    Raises:
        UserError: The bill, a recording or the ledger is damaged.
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


def verdict(models: Iterable[Reconciled]) -> str:
    """Summarize the comparison of all models in one line."""
    models = list(models)
    faults = [f"{item.model}: {fault}" for item in models for fault in item.faults]
    total = (
        f"{pluralize(sum(item.recorded for item in models), 'recorded answer')} to"
        f" {pluralize(sum(item.requests for item in models), 'request')},"
        f" ${math.fsum(item.billed_usd for item in models):.2f} billed,"
        f" ${math.fsum(item.lost_usd for item in models):.2f} of this for lost replies,"
        f" ${math.fsum(item.ledger_usd for item in models):.2f} in the ledger"
    )
    if faults:
        return f"the bill and the ledger disagree ({total}): {'; '.join(faults)}"
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
    billed_answers = [(item, complete.get(item.question)) for item in recorded]
    for_answers = math.fsum(charge.usd for _, charge in billed_answers if charge)
    ledger = in_ledger(spending.settled) + math.fsum(
        costs[item.file, item.key] for item in unsettled
    )
    held_usd = math.fsum(item.usd for item in held) + in_ledger(spending.possibly_billed)
    unanswered = round(in_ledger(spending.unanswered))

    faults = []
    if missing := sum(charge is None for _, charge in billed_answers):
        faults.append(f"{pluralize(missing, 'recorded answer')} not on the bill")
    if other := sum(
        item.tokens != (charge.input_tokens, charge.output_tokens)
        for item, charge in billed_answers
        if charge
    ):
        faults.append(f"{pluralize(other, 'recorded answer')} with different token counts")
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
    """Return litellm's id of a checkpoint: the provider and the model name in requests."""
    return f"{checkpoint.partition('/')[0]}/{api_model_name(checkpoint)}"
