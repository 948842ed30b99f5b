"""Before a run, estimate its cost and check whether its models can be queried.

The estimates use the same task objects as the run (`pieline.llm.task`).
"""

import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from pieline.core.errors import UserError, pluralize
from pieline.llm.answers import Answer
from pieline.llm.costs import MOST_TOKENS, Estimate, estimate, largest_count
from pieline.llm.obstacles import obstacles
from pieline.llm.questions import Question
from pieline.llm.recordings import read_answers
from pieline.llm.settings import LLMSettings
from pieline.llm.spending import remaining_usd
from pieline.llm.task import PaperSize, Task, by_kind_and_model
from pieline.models.llm import LLMEntry
from pieline.models.llm_weights import weights_path

ENOUGH_ANSWERS = 20
"""Minimum number of recorded answers whose mean length is used for new answers."""

THOUGHT_TOKENS = 1000
"""Expected thinking tokens per answer if too few comparable answers are recorded."""

ENDS_SOON_DAYS = 90
"""Number of days before a model's shutdown from which its missing answers are listed."""


class TaskEstimate(NamedTuple):
    """Estimated cost of one model in one kind of task, over all settings and seeds.

    Attributes:
        kind: Kind of task.
        model: Name in models.yaml.
        entry: Entry of the model.
        estimate: Calls, tokens and cost, without questions that are unknown.
        unknown: Input files that are missing or will be recreated; the questions that depend on
            them are unknown.
        is_rough: Whether some questions are counted on the papers' data, because their own data is
            missing.
        bases: Descriptions of what the expected length of answers is based on.
    """

    kind: str
    model: str
    entry: LLMEntry
    estimate: Estimate
    unknown: tuple[str, ...]
    is_rough: bool
    bases: tuple[str, ...]


AnswerKind = tuple[str, int, bool]
"""Key of a group of answers that should be of similar length: kind of task, its expected output
tokens, and whether the model is billed for thinking."""


def estimate_tasks(
    tasks: Iterable[Task],
    settings: LLMSettings,
    remade: Collection[str] = (),
    *,
    on_papers_data: bool = False,
) -> list[TaskEstimate]:
    """Estimate calls, tokens and cost by kind of task and model, in the order of the tasks.

    Args:
        tasks: Tasks whose questions the run asks.
        settings: Settings for querying models.
        remade: Files that the run will recreate; questions that depend on them are unknown.
        on_papers_data: Whether the missing data is the papers', so that its size counts.
    """
    groups = by_kind_and_model(tasks)
    entries = {name: members[0].entry() for name, members in groups.items()}
    attempts = 1 if settings.mode == "replay" else settings.max_attempts
    answers = {
        task.recordings: read_answers(task.recordings, attempts=attempts)
        for members in groups.values()
        for task in members
    }
    lengths = _lengths(groups, entries, answers)
    recorded = {} if settings.mode == "fresh" else answers
    result = []
    for name, members in groups.items():
        item = _estimate(
            name,
            members,
            entries[name],
            recorded,
            lengths,
            remade=remade,
            on_papers_data=on_papers_data,
        )
        result.append(item)
    return result


def _estimate(
    name: tuple[str, str],
    tasks: Sequence[Task],
    entry: LLMEntry,
    recorded: Mapping[str, Mapping[str, Answer]],
    lengths: Mapping[AnswerKind, Mapping[str, Sequence[int]]],
    *,
    remade: Collection[str],
    on_papers_data: bool,
) -> TaskEstimate:
    """Estimate one model's tasks of one kind; `name` is (kind, model)."""
    total = Estimate(entry)
    is_rough = False
    unknown: set[str] = set()
    bases: dict[str, None] = {}
    # Equal questions are asked once per recordings file.
    counted: dict[str, set[Question]] = {}
    for task in tasks:
        tokens, basis = _likely(task, entry, lengths)
        if missing := missing_inputs(task, remade):
            size = task.paper_size() if on_papers_data else PaperSize()
            if size.questions:
                total += _of_size(size, entry, tokens)
                is_rough = True
                bases[basis] = None
            else:
                unknown.update(missing)
            continue
        before = counted.setdefault(task.recordings, set())
        questions = [question for question in task.questions(entry) if question not in before]
        before.update(questions)
        part = estimate(questions, entry, recorded.get(task.recordings, ()), tokens)
        total += part
        if part.to_ask:
            bases[basis] = None
    return TaskEstimate(*name, entry, total, tuple(sorted(unknown)), is_rough, tuple(bases))


def _of_size(size: PaperSize, entry: LLMEntry, likely: int) -> Estimate:
    """Estimate questions of a given size; `likely` is the expected tokens per answer."""
    questions = size.questions
    sent = size.max_tokens or (entry.defaults or {}).get("max_tokens")
    limit = sent or entry.max_output_tokens
    return Estimate(
        entry,
        questions,
        input_tokens=questions * size.input_tokens,
        output_tokens=limit and questions * limit,
        likely_output_tokens=questions * min(likely, limit or likely),
    )


def _lengths(
    groups: Mapping[tuple[str, str], Sequence[Task]],
    entries: Mapping[tuple[str, str], LLMEntry],
    answers: Mapping[str, Mapping[str, Answer]],
) -> dict[AnswerKind, dict[str, list[int]]]:
    """Return the output tokens of recorded answers of models, by kind of answer and model."""
    lengths: dict[AnswerKind, dict[str, list[int]]] = {}
    for (kind, model), tasks in groups.items():
        thinks = entries[kind, model].bills_thoughts
        for expected, path in {(task.likely_output_tokens(), task.recordings) for task in tasks}:
            asked = [answer for answer in answers[path].values() if answer.origin == "asked"]
            counts = [
                answer.output_tokens
                for answer in asked
                if answer.output_tokens is not None and largest_count(answer) <= MOST_TOKENS
            ]
            lengths.setdefault((kind, expected, thinks), {}).setdefault(model, []).extend(counts)
    return lengths


def _likely(
    task: Task, entry: LLMEntry, lengths: Mapping[AnswerKind, Mapping[str, Sequence[int]]]
) -> tuple[int, str]:
    """Return the expected output tokens of one answer, and a description of the basis."""
    expected = task.likely_output_tokens()
    by_model = lengths[type(task).__name__, expected, entry.bills_thoughts]
    everyone = [count for counts in by_model.values() for count in counts]
    for counts, whose in ((by_model[task.model], "own answers"), (everyone, "others' answers")):
        if len(counts) >= ENOUGH_ANSWERS:
            return round(fmean(counts)), whose
    if entry.bills_thoughts:
        return expected + THOUGHT_TOKENS, "form and thinking"
    return expected, "form"


def record_now(
    estimates: Iterable[TaskEstimate], entries: Mapping[str, LLMEntry], today: date | None = None
) -> list[str]:
    """Return a line for each estimate with missing answers whose model ends soon or has ended.

    The lines are sorted by shutdown date. Models that ended on an unknown date are omitted.

    Args:
        estimates: Estimates of any models.
        entries: Entries of models.yaml by name.
        today: Date to compare with (default: the current date).
    """
    today = today or date.today()
    lines = []
    for item in estimates:
        cost, entry = item.estimate, entries[item.model]
        if not isinstance(entry.ends, date) or not (cost.to_ask or item.unknown):
            continue
        days = (entry.ends - today).days
        if days > ENDS_SOON_DAYS:
            continue
        if days > 0:
            state = f"record now: {item.model} ends on {entry.ends}, in {pluralize(days, 'day')}"
        else:
            state = f"left out: {item.model} ended on {entry.ends}, so only a gateway may serve it"
        missing = []
        if cost.to_ask:
            missing.append(
                f"{pluralize(cost.to_ask, 'question')} missing, likely"
                f" {format_usd(entry, cost.likely_usd)}, at most {format_usd(entry, cost.usd)}"
            )
        if item.unknown:
            is_partly_known = bool(cost.to_ask)
            missing.append(
                "more once all data exists" if is_partly_known else "its data does not exist yet"
            )
        lines.append((entry.ends, f"{state}; {item.kind}: {', and '.join(missing)}"))
    return [line for _, line in sorted(lines)]


def format_usd(entry: LLMEntry, usd: float | None) -> str:
    """Format a cost: as dollars, `free`, `unknown` or `unbounded`."""
    if usd is not None:
        return f"${usd:.2f}" if entry.paid else "free"
    return "unknown" if entry.cost_is_unknown else "unbounded"


def missing_inputs(task: Task, remade: Collection[str]) -> list[str]:
    """Return the paths of a task's inputs that are missing or will be recreated (`remade`)."""
    inputs = task.inputs.values()
    return [path for path in inputs if path in remade or not Path(path).exists()]


def cap_warning(estimates: Iterable[TaskEstimate], settings: LLMSettings) -> str:
    """Return a warning if the spending cap may stop the run early, else an empty string."""
    paid = [item.estimate for item in estimates if item.entry.paid and item.estimate.to_ask]
    if not settings.max_cost_usd:
        return ""
    likely = sum(cost.likely_usd or 0.0 for cost in paid)
    most = sum(cost.usd or 0.0 for cost in paid)
    left = remaining_usd(settings)
    if left >= most:
        return ""
    return (
        f"llm.max_cost_usd leaves ${left:.2f}, but the questions may cost more (likely"
        f" ${likely:.2f}, at most ${most:.2f}): a run stops at the cap and keeps all answers"
    )


def notices(
    tasks: Iterable[Task],
    entries: Mapping[str, LLMEntry],
    settings: LLMSettings,
    remade: Collection[str] = (),
) -> list[str]:
    """Return the lines of `record_now` and `cap_warning`."""
    # Making questions takes seconds, so skip models that need no notice.
    shown = [
        task
        for task in tasks
        if entries[task.model].ends or (settings.max_cost_usd and entries[task.model].paid)
    ]
    estimates = estimate_tasks(shown, settings, remade)
    lines = [*record_now(estimates, entries), cap_warning(estimates, settings)]
    return [line for line in lines if line]


def check(tasks: Iterable[Task], settings: LLMSettings, remade: Collection[str] = ()) -> None:
    """Check that all answers are recorded or can be obtained.

    Prints one line on stderr for each model that fails the check, and a warning for each one that
    has ended and whose runs without recordings will be left out. A task whose inputs are missing
    or will be recreated (`remade`) is checked only if its recordings file does not exist.

    Raises:
        UserError: Some answers are not recorded, and their models cannot be queried.
    """
    by_model: dict[str, list[Task]] = {}
    for task in tasks:
        by_model.setdefault(task.model, []).append(task)
    problems = []
    for model, members in by_model.items():
        entry = members[0].entry()
        # Making questions takes seconds, so do it only for models that lack something.
        lacking = blocking_reasons(entry, settings)
        if lacking and (missing := _not_recorded(members, settings, remade)):
            problem = f"{model} ({missing}): {', '.join(lacking)}"
            begun = [task for task in members if Path(task.recordings).exists()]
            if settings.end_reason(entry) and not _not_recorded(begun, settings, remade):
                print(f"warning: {problem}", file=sys.stderr)
            else:
                problems.append(problem)
    for problem in problems:
        print(problem, file=sys.stderr)
    if problems:
        raise UserError(
            f"{pluralize(len(problems), 'language model')} cannot be asked for answers that are not"
            " recorded",
            hint="add what is missing, import recordings, or leave these models out",
        )


def blocking_reasons(entry: LLMEntry, settings: LLMSettings) -> list[str]:
    """Return all reasons why a model cannot be queried with these settings.

    Also checks the digest of local weights if there is no other reason.
    """
    lacking = [obstacle.what for obstacle in obstacles(entry, settings)]
    if entry.is_local and not lacking:
        try:
            weights_path(entry)
        except UserError as error:
            lacking.append(error.what)
    return lacking


def _not_recorded(tasks: Sequence[Task], settings: LLMSettings, remade: Collection[str]) -> str:
    """Return a summary of the missing answers of one model's tasks; empty if there are none."""
    is_fresh = settings.mode == "fresh"
    recorded = {
        task.recordings for task in tasks if Path(task.recordings).exists() and not is_fresh
    }
    to_ask = sum(item.estimate.to_ask for item in estimate_tasks(tasks, settings, remade))
    runs = sum(
        task.recordings not in recorded and bool(missing_inputs(task, remade)) for task in tasks
    )
    if not (to_ask or runs):
        return ""
    if not recorded:
        return "all are asked again" if is_fresh else "nothing is recorded"
    parts = []
    if to_ask:
        parts.append(f"{pluralize(to_ask, 'answer')} not recorded")
    if runs:
        parts.append(f"nothing recorded for {pluralize(runs, 'run')}")
    return ", ".join(parts)
