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
"""Minimum number of recorded answers to estimate the length of new answers from."""

THOUGHT_TOKENS = 1000
"""Expected thinking tokens per answer if too few comparable answers are recorded."""

ENDS_SOON_DAYS = 90
"""Number of days before a model's shutdown from which its missing answers are listed."""


class TaskEstimate(NamedTuple):
    """Estimated cost of one model in one kind of task, over all settings and seeds.

    Attributes:
        kind: Kind of task: the name of its class.
        model: Name in models.yaml.
        entry: Entry of the model.
        estimate: Calls, tokens and cost, without unknown questions.
        unknown: Input files that are missing or will be recreated. The questions that depend on
            these files are unknown.
        is_rough: Whether some questions are estimated from the size of the papers' data, because
            the data of the run is missing.
        bases: What the expected length of answers is based on: the model's own recorded answers,
            those of other models, or the form of the answer.
    """

    kind: str
    model: str
    entry: LLMEntry
    estimate: Estimate
    unknown: tuple[str, ...]
    is_rough: bool
    bases: tuple[str, ...]


AnswerKind = tuple[str, int, bool]
"""Group of answers of similar length: kind of task, expected output tokens of the task, and whether
the model is billed for thinking."""


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
        remade: Files that the run will recreate; questions that depend on these files are unknown.
        on_papers_data: Whether the run uses the papers' data. If so, the sizes of missing data are
            known (`Task.paper_size`).
    """
    groups = by_kind_and_model(tasks)
    entries = {group: group_tasks[0].entry() for group, group_tasks in groups.items()}
    attempts = 1 if settings.mode == "replay" else settings.max_attempts
    answers_by_file = {
        task.recordings: read_answers(task.recordings, attempts=attempts)
        for group_tasks in groups.values()
        for task in group_tasks
    }
    lengths = _recorded_lengths(groups, entries, answers_by_file)
    if settings.mode == "fresh":  # all questions are asked again
        answers_by_file = {}
    return [
        _estimate_group(
            group_tasks,
            entries[group],
            answers_by_file,
            lengths,
            remade=remade,
            on_papers_data=on_papers_data,
        )
        for group, group_tasks in groups.items()
    ]


def _estimate_group(
    tasks: Sequence[Task],
    entry: LLMEntry,
    answers_by_file: Mapping[str, Mapping[str, Answer]],
    lengths: Mapping[AnswerKind, Mapping[str, Sequence[int]]],
    *,
    remade: Collection[str],
    on_papers_data: bool,
) -> TaskEstimate:
    """Estimate calls, tokens and cost of tasks of the same kind and model.

    Args:
        tasks: Tasks, at least one.
        entry: Entry of the model.
        answers_by_file: Answers that are not asked again, by recordings file and key.
        lengths: Result of `_recorded_lengths`.
        remade: See `estimate_tasks`.
        on_papers_data: See `estimate_tasks`.
    """
    total = Estimate(entry)
    is_rough = False
    unknown_files: set[str] = set()
    bases: dict[str, None] = {}  # a set in the order of the tasks
    # Equal questions are asked once per recordings file.
    questions_by_file: dict[str, set[Question]] = {}
    for task in tasks:
        likely_tokens, basis = _likely_tokens(task, entry, lengths)
        missing_files = missing_inputs(task, remade)
        if missing_files:
            size = task.paper_size() if on_papers_data else PaperSize()
            if size.questions:
                total += _estimate_size(size, entry, likely_tokens)
                is_rough = True
                bases[basis] = None
            else:
                unknown_files.update(missing_files)
            continue
        earlier_questions = questions_by_file.setdefault(task.recordings, set())
        new_questions = [
            question for question in task.questions(entry) if question not in earlier_questions
        ]
        earlier_questions.update(new_questions)
        answers = answers_by_file.get(task.recordings, {})
        task_estimate = estimate(new_questions, entry, answers, likely_tokens)
        total += task_estimate
        if task_estimate.to_ask:
            bases[basis] = None
    return TaskEstimate(
        kind=type(tasks[0]).__name__,
        model=tasks[0].model,
        entry=entry,
        estimate=total,
        unknown=tuple(sorted(unknown_files)),
        is_rough=is_rough,
        bases=tuple(bases),
    )


def _estimate_size(size: PaperSize, entry: LLMEntry, likely_tokens: int) -> Estimate:
    """Estimate the cost of a task of this size, with `likely_tokens` expected tokens per answer."""
    questions = size.questions
    sent_limit = size.max_tokens or (entry.defaults or {}).get("max_tokens")
    limit = sent_limit or entry.max_output_tokens
    return Estimate(
        entry,
        questions,
        input_tokens=questions * size.input_tokens,
        output_tokens=questions * limit if limit else None,
        likely_output_tokens=questions * min(likely_tokens, limit or likely_tokens),
    )


def _recorded_lengths(
    groups: Mapping[tuple[str, str], Sequence[Task]],
    entries: Mapping[tuple[str, str], LLMEntry],
    answers_by_file: Mapping[str, Mapping[str, Answer]],
) -> dict[AnswerKind, dict[str, list[int]]]:
    """Return the number of output tokens of each recorded answer, by kind of answer and by model.

    Hand-written answers and answers with missing or impossible token counts are left out.
    """
    lengths: dict[AnswerKind, dict[str, list[int]]] = {}
    for (kind, model), tasks in groups.items():
        bills_thoughts = entries[kind, model].bills_thoughts
        # Tasks may share a recordings file, whose answers count once.
        tokens_and_files = {(task.likely_output_tokens(), task.recordings) for task in tasks}
        for expected_tokens, path in tokens_and_files:
            lengths_by_model = lengths.setdefault((kind, expected_tokens, bills_thoughts), {})
            lengths_of_model = lengths_by_model.setdefault(model, [])
            for answer in answers_by_file[path].values():
                if answer.origin != "asked" or largest_count(answer) > MOST_TOKENS:
                    continue
                if answer.output_tokens is not None:
                    lengths_of_model.append(answer.output_tokens)
    return lengths


def _likely_tokens(
    task: Task, entry: LLMEntry, lengths: Mapping[AnswerKind, Mapping[str, Sequence[int]]]
) -> tuple[int, str]:
    """Return the expected output tokens of one answer, and what the expectation is based on.

    The expectation is the mean length of the model's recorded answers of the same kind, else of all
    models' recorded answers of this kind (see `_recorded_lengths`), if there are at least
    `ENOUGH_ANSWERS`. Otherwise, the task states the expectation.
    """
    expected = task.likely_output_tokens()
    lengths_by_model = lengths[type(task).__name__, expected, entry.bills_thoughts]
    own_lengths = lengths_by_model[task.model]
    if len(own_lengths) >= ENOUGH_ANSWERS:
        return round(fmean(own_lengths)), "own answers"
    all_lengths = [length for of_model in lengths_by_model.values() for length in of_model]
    if len(all_lengths) >= ENOUGH_ANSWERS:
        return round(fmean(all_lengths)), "others' answers"
    if entry.bills_thoughts:
        return expected + THOUGHT_TOKENS, "form and thinking"
    return expected, "form"


def list_ending_models(
    estimates: Iterable[TaskEstimate], entries: Mapping[str, LLMEntry], today: date | None = None
) -> list[str]:
    """Return a line for each estimate with missing answers if its model ends soon or has ended.

    The lines are sorted by shutdown date. Models that ended on an unknown date are left out.

    Args:
        estimates: Estimates of any models.
        entries: Entries of models.yaml by name.
        today: Date to compare with (default: the current date).
    """
    today = today or date.today()
    dated_lines = []
    for task_estimate in estimates:
        entry = entries[task_estimate.model]
        has_missing_answers = bool(task_estimate.estimate.to_ask or task_estimate.unknown)
        if not isinstance(entry.ends, date) or not has_missing_answers:
            continue
        days_left = (entry.ends - today).days
        if days_left > ENDS_SOON_DAYS:
            continue
        model, missing = task_estimate.model, _describe_missing(task_estimate, entry)
        if days_left > 0:
            state = f"record now: {model} ends on {entry.ends}, in {pluralize(days_left, 'day')}"
        else:
            state = f"left out: {model} ended on {entry.ends}, so only a gateway may serve it"
        dated_lines.append((entry.ends, f"{state}; {task_estimate.kind}: {missing}"))
    return [line for _, line in sorted(dated_lines)]


def _describe_missing(task_estimate: TaskEstimate, entry: LLMEntry) -> str:
    """Describe the number and cost of missing answers, and whether questions are still unknown."""
    cost = task_estimate.estimate
    descriptions = []
    if cost.to_ask:
        descriptions.append(
            f"{pluralize(cost.to_ask, 'question')} missing, likely"
            f" {format_usd(entry, cost.likely_usd)}, at most {format_usd(entry, cost.usd)}"
        )
    if task_estimate.unknown:
        is_partly_known = bool(cost.to_ask)
        descriptions.append(
            "more once all data exists" if is_partly_known else "its data does not exist yet"
        )
    return ", and ".join(descriptions)


def format_usd(entry: LLMEntry, usd: float | None) -> str:
    """Format the cost of a model's answers: as US dollars, `free`, `unknown` or `unbounded`.

    Args:
        entry: Entry of the model.
        usd: Cost in US dollars; None if it is unknown or unbounded (see `Estimate`).
    """
    if usd is not None:
        return f"${usd:.2f}" if entry.paid else "free"
    return "unknown" if entry.cost_is_unknown else "unbounded"


def missing_inputs(task: Task, remade: Collection[str]) -> list[str]:
    """Return the paths of a task's inputs that are missing or will be recreated (`remade`)."""
    inputs = task.inputs.values()
    return [path for path in inputs if path in remade or not Path(path).exists()]


def cap_warning(estimates: Iterable[TaskEstimate], settings: LLMSettings) -> str:
    """Return a warning if the spending cap may stop the run early, else an empty string."""
    if not settings.max_cost_usd:
        return ""
    paid_estimates = [
        task_estimate.estimate
        for task_estimate in estimates
        if task_estimate.entry.paid and task_estimate.estimate.to_ask
    ]
    likely_usd = sum(cost.likely_usd or 0.0 for cost in paid_estimates)
    max_usd = sum(cost.usd or 0.0 for cost in paid_estimates)
    left_usd = remaining_usd(settings)
    if left_usd >= max_usd:
        return ""
    return (
        f"llm.max_cost_usd leaves ${left_usd:.2f}, but the questions may cost more (likely"
        f" ${likely_usd:.2f}, at most ${max_usd:.2f}): a run stops at the cap and keeps all answers"
    )


def notices(
    tasks: Iterable[Task],
    entries: Mapping[str, LLMEntry],
    settings: LLMSettings,
    remade: Collection[str] = (),
) -> list[str]:
    """Return the lines of `list_ending_models` and `cap_warning` for the questions of a run.

    Args:
        tasks: Tasks whose questions the run asks.
        entries: Entries of models.yaml by name.
        settings: Settings for querying models.
        remade: Files that the run will recreate.
    """
    noticed_tasks = []
    for task in tasks:
        entry = entries[task.model]
        # Making questions takes seconds, so skip models that need no notice.
        if entry.ends or (settings.max_cost_usd and entry.paid):
            noticed_tasks.append(task)
    estimates = estimate_tasks(noticed_tasks, settings, remade)
    lines = [*list_ending_models(estimates, entries), cap_warning(estimates, settings)]
    return [line for line in lines if line]


def check(tasks: Iterable[Task], settings: LLMSettings, remade: Collection[str] = ()) -> None:
    """Check that all answers of the tasks are recorded or can be obtained from the models.

    Prints one line on stderr for each model that fails the check. If such a model has ended, and
    only tasks without a recordings file lack answers, the line is only a warning, because the run
    leaves out these tasks. A task whose inputs are missing or will be recreated (`remade`) is
    checked only if its recordings file does not exist.

    Raises:
        UserError: Some answers are not recorded, and their models cannot be queried.
    """
    tasks_by_model: dict[str, list[Task]] = {}
    for task in tasks:
        tasks_by_model.setdefault(task.model, []).append(task)
    problems = []
    for model, model_tasks in tasks_by_model.items():
        entry = model_tasks[0].entry()
        reasons = blocking_reasons(entry, settings)
        if not reasons:
            continue
        # Making questions takes seconds, so count only the answers of models with such reasons.
        missing = _summarize_missing(model_tasks, settings, remade)
        if not missing:
            continue
        problem = f"{model} ({missing}): {', '.join(reasons)}"
        begun_tasks = [task for task in model_tasks if Path(task.recordings).exists()]
        # The run leaves out the tasks of an ended model that have no recordings.
        if settings.end_reason(entry) and not _summarize_missing(begun_tasks, settings, remade):
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
    reasons = [obstacle.what for obstacle in obstacles(entry, settings)]
    if entry.is_local and not reasons:
        try:
            weights_path(entry)
        except UserError as error:
            reasons.append(error.what)
    return reasons


def _summarize_missing(
    tasks: Sequence[Task], settings: LLMSettings, remade: Collection[str]
) -> str:
    """Return a summary of the missing answers of one model's tasks; empty if there are none."""
    is_fresh = settings.mode == "fresh"  # then, recorded answers do not count
    unrecorded_tasks = [task for task in tasks if is_fresh or not Path(task.recordings).exists()]
    task_estimates = estimate_tasks(tasks, settings, remade)
    to_ask = sum(task_estimate.estimate.to_ask for task_estimate in task_estimates)
    # The questions of a task with missing inputs cannot be counted.
    uncountable_runs = sum(bool(missing_inputs(task, remade)) for task in unrecorded_tasks)
    if not to_ask and not uncountable_runs:
        return ""
    if len(unrecorded_tasks) == len(tasks):
        return "all are asked again" if is_fresh else "nothing is recorded"
    descriptions = []
    if to_ask:
        descriptions.append(f"{pluralize(to_ask, 'answer')} not recorded")
    if uncountable_runs:
        descriptions.append(f"nothing recorded for {pluralize(uncountable_runs, 'run')}")
    return ", ".join(descriptions)
