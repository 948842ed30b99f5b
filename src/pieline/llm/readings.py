"""Count the formats and outcomes of recorded answers, to detect formats that are not parsed."""

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from pieline.core.errors import pluralize
from pieline.core.outcomes import READABLE
from pieline.llm.answers import Answer
from pieline.llm.parsing import Outcome
from pieline.llm.recordings import read_answers
from pieline.llm.task import Task, by_kind_and_model

EXAMPLES = 2
"""Maximum number of examples per format."""
SHOWN = 80
"""Maximum number of characters of an example."""


def count_outcomes(task: Task, answers: Iterable[Answer]) -> str:
    """Return a line that states how many answers of a task have each outcome."""
    counts = Counter(task.reading(answer).outcome for answer in answers)
    readable = sum(count for outcome, count in counts.items() if outcome.is_readable)
    truncated = counts[Outcome.TRUNCATED]
    filtered = counts[Outcome.FILTERED]
    refused = counts[Outcome.REFUSED]
    otherwise_unreadable = counts.total() - readable - truncated - filtered - refused
    return (
        f"{pluralize(counts.total(), 'answer')}: {readable} readable, {truncated} cut off,"
        f" {filtered} filtered, {refused} refused, {otherwise_unreadable} unreadable"
    )


class FormCount(NamedTuple):
    """Number of answers with the same format from one model in one kind of task.

    Attributes:
        kind: Kind of task.
        model: Name in models.yaml.
        outcome: Outcome of parsing.
        rule: Rule that parsed the answers, or the reason why no rule could parse them.
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

    For each kind and model, unreadable formats come first, and more frequent formats come before
    rarer ones. All answers in the recordings files of the tasks count, even if the data of the
    tasks is missing.

    Raises:
        UserError: A recording is damaged; the message states file and line.
    """
    form_counts = []
    for (kind, model), group_tasks in by_kind_and_model(tasks).items():
        task_by_file = {task.recordings: task for task in group_tasks}
        form_counts += _count_forms_of_model(kind, model, task_by_file)
    return form_counts


def _count_forms_of_model(
    kind: str, model: str, task_by_file: Mapping[str, Task]
) -> list[FormCount]:
    """Count the formats of one model's answers in one kind of task, in the order of `count_forms`.

    Args:
        kind: Kind of task.
        model: Name in models.yaml.
        task_by_file: Task that reads the answers, by recordings file.
    """
    texts_by_form: dict[tuple[str, str], list[str]] = {}
    for path, task in task_by_file.items():
        for answer in read_answers(Path(path)).values():
            parsed = task.reading(answer)
            form = parsed.outcome.value, parsed.rule or parsed.reason
            text = " ".join((answer.text or "").split())
            texts_by_form.setdefault(form, []).append(text)
    form_counts = [
        FormCount(kind, model, outcome, rule, answers=len(texts), examples=_examples(texts))
        for (outcome, rule), texts in texts_by_form.items()
    ]
    return sorted(
        form_counts, key=lambda form: (form.outcome in READABLE, -form.answers, form.rule)
    )


def _examples(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the first `EXAMPLES` distinct nonempty texts, shortened to `SHOWN` characters."""
    shortened = [text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…" for text in texts if text]
    return tuple(dict.fromkeys(shortened))[:EXAMPLES]
