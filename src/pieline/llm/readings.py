"""Counts of how the recorded answers of each model were read, to detect unknown forms."""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from pieline.core.outcomes import READABLE
from pieline.llm.recordings import read_answers
from pieline.llm.task import Task, by_kind_and_model

EXAMPLES = 2
SHOWN = 80
"""Characters of an example."""


class FormCount(NamedTuple):
    """Answers of one form.

    Attributes:
        kind: of the task.
        model: name in models.yaml.
        outcome: what became of the answers.
        rule: that read them, or why none did.
        answers: how many.
        examples: how some of them begin.
    """

    kind: str
    model: str
    outcome: str
    rule: str
    answers: int
    examples: tuple[str, ...]


def readings(tasks: Iterable[Task]) -> list[FormCount]:
    """Count forms by kind of task and model in the order of the tasks, unreadable and common first.

    Counted are all answers in the tasks' files of recordings, each file once for a kind of task,
    whether or not the tasks' data is made.

    Raises:
        UserError: a damaged recording; names file and line.
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
    """Return the first different texts, shortened."""
    shown = dict.fromkeys(
        text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…" for text in texts if text
    )
    return tuple(shown)[:EXAMPLES]
