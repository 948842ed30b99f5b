"""Count how the recorded answers of each model were parsed, to detect unknown formats."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from pieline.core.errors import pluralize
from pieline.core.outcomes import READABLE
from pieline.llm.answers import Answer
from pieline.llm.parsing import Outcome
from pieline.llm.recordings import read_answers
from pieline.llm.task import Task, by_kind_and_model

EXAMPLES = 2
SHOWN = 80
"""Maximum number of characters of an example."""


def count_outcomes(task: Task, answers: Iterable[Answer]) -> str:
    """Return how many answers of a run have no value, by reason, as one line."""
    outcomes = Counter(task.reading(answer).outcome for answer in answers)
    named = (Outcome.TRUNCATED, Outcome.FILTERED, Outcome.REFUSED)
    readable = sum(count for outcome, count in outcomes.items() if outcome.is_readable)
    unreadable = outcomes.total() - readable - sum(outcomes[outcome] for outcome in named)
    cut, filtered, refused = (outcomes[outcome] for outcome in named)
    return (
        f"{pluralize(outcomes.total(), 'answer')}: {readable} readable, {cut} cut off,"
        f" {filtered} filtered, {refused} refused, {unreadable} unreadable"
    )


class FormCount(NamedTuple):
    """Number of answers with the same format from one model in one kind of task.

    Attributes:
        kind: Kind of task.
        model: Name in models.yaml.
        outcome: Outcome of parsing.
        rule: Rule that parsed the answers, or the reason why none did.
        answers: Number of answers.
        examples: Beginnings of some of the answers.
    """

    kind: str
    model: str
    outcome: str
    rule: str
    answers: int
    examples: tuple[str, ...]


def count_forms(tasks: Iterable[Task]) -> list[FormCount]:
    """Count the formats of answers by kind of task and model, in the order of the tasks.

    For each kind and model, unreadable formats come first; otherwise, the formats are sorted by
    frequency. All answers in the recordings files of the tasks count, even if the data of the tasks
    is missing.

    Raises:
        UserError: A recording is damaged; the message states file and line.
    """
    return [
        form
        for (kind, model), own in by_kind_and_model(tasks).items()
        for form in _forms(kind, model, {task.recordings: task for task in own})
    ]


def _forms(kind: str, model: str, files: dict[str, Task]) -> list[FormCount]:
    texts: dict[tuple[str, str], list[str]] = {}
    for path, task in files.items():
        for answer in read_answers(Path(path)).values():
            parsed = task.reading(answer)
            form = parsed.outcome.value, parsed.rule or parsed.reason
            texts.setdefault(form, []).append(" ".join((answer.text or "").split()))
    return sorted(
        (
            FormCount(kind, model, outcome, rule, len(own), _examples(own))
            for (outcome, rule), own in texts.items()
        ),
        key=lambda form: (form.outcome in READABLE, -form.answers, form.rule),
    )


def _examples(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the first distinct nonempty texts, shortened to `SHOWN` characters."""
    shown = dict.fromkeys(
        text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…" for text in texts if text
    )
    return tuple(shown)[:EXAMPLES]
