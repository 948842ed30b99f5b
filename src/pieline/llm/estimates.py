"""What asking would cost and whether it can be done, before anything is asked.

Works on the very tasks that are asked (`pieline.llm.task`), so what is estimated is what is asked.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from pieline.core.errors import UserError
from pieline.llm.costs import Estimate, estimate
from pieline.llm.keys import api_key
from pieline.llm.questions import Question
from pieline.llm.recordings import read_answers
from pieline.llm.server import weights_path
from pieline.llm.settings import LLMSettings
from pieline.llm.task import Task
from pieline.models.llm import LLMEntry


class TaskEstimate(NamedTuple):
    """What one model will cost in one kind of task, all its settings and seeds together.

    Attributes:
        kind: of the task.
        model: name in models.yaml.
        entry: the model.
        estimate: calls, tokens and dollars of the questions that are known.
        unknown: inputs that are not made yet, so that their questions are not known.
    """

    kind: str
    model: str
    entry: LLMEntry
    estimate: Estimate
    unknown: tuple[str, ...]


def estimates(tasks: Iterable[Task], settings: LLMSettings) -> list[TaskEstimate]:
    """Calls, tokens and dollars by kind of task and model, in the order of the tasks."""
    groups: dict[tuple[str, str], list[Task]] = {}
    for task in tasks:
        groups.setdefault((type(task).__name__, task.model), []).append(task)
    return [_estimate(kind, model, members, settings) for (kind, model), members in groups.items()]


def _estimate(kind: str, model: str, tasks: Sequence[Task], settings: LLMSettings) -> TaskEstimate:
    entry = tasks[0].entry()
    questions: list[Question] = []
    recorded: set[str] = set()
    unknown: set[str] = set()
    for task in tasks:
        missing = [path for path in task.inputs.values() if not Path(path).exists()]
        if missing:
            unknown.update(missing)
            continue
        asked = task.questions(entry)
        questions += asked
        if settings.mode != "fresh":
            recorded |= read_answers(Path(task.recordings), {item.key for item in asked}).keys()
    expected = estimate(questions, entry, recorded)
    return TaskEstimate(kind, model, entry, expected, tuple(sorted(unknown)))


def check(tasks: Iterable[Task], settings: LLMSettings) -> int:
    """Stop before anything is asked if some answers can be had from nowhere.

    Tasks whose inputs are not made yet count as far as their recordings are missing altogether.

    Returns:
        The number of questions that are recorded or can be asked.

    Raises:
        UserError: one for everything that is missing: for each model the number of answers that
            are not recorded and the key, the weights or the money that it takes to ask for them.
    """
    tasks = list(tasks)
    problems, questions = [], 0
    for item in estimates(tasks, settings):
        questions += item.estimate.questions
        lack = _lack(item, settings)
        if not lack:
            continue
        if item.estimate.to_ask:
            problems.append(f"{item.model} ({item.estimate.to_ask} answers not recorded): {lack}")
        elif item.unknown and not any(
            Path(task.recordings).exists() for task in tasks if task.model == item.model
        ):
            problems.append(f"{item.model} (nothing is recorded): {lack}")
    if problems:
        raise UserError(
            "; ".join(problems),
            where="language models",
            mend="mend this, import recordings, or leave these models out",
        )
    return questions


def _lack(item: TaskEstimate, settings: LLMSettings) -> str:
    """What keeps a model from being asked, empty if nothing does."""
    if settings.mode == "replay":
        return "llm.mode is replay"
    entry, usd = item.entry, item.estimate.usd
    try:
        api_key(entry)
        if entry.is_local:
            weights_path(entry)
    except UserError as error:
        return f"{error.where}: {error.what}" if entry.is_local else error.what
    if entry.prices and settings.max_cost_usd == 0:
        cost = "an unknown sum" if usd is None or item.unknown else f"up to ${usd:.2f}"
        return f"costs {cost} and llm.max_cost_usd is 0"
    return ""
