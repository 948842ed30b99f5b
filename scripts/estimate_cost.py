"""Print the remaining questions and jobs, and what the questions may cost; ask no model."""

import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from pieline.configured_tasks import planned_tasks
from pieline.core.jobs import job
from pieline.llm.estimates import (
    ENOUGH_ANSWERS,
    THOUGHT_TOKENS,
    TaskEstimate,
    blocking_reasons,
    cap_warning,
    estimate_tasks,
    format_usd,
    list_ending_models,
)
from pieline.models.fetching import GIGABYTE
from pieline.models.registry import load_registry
from pieline.resources import ModelJobs, dry_run, jobs_by_model, read_plan, remade

COLUMNS = ("task", "model", "questions", "recorded", "to ask", "tokens in", "tokens out",
           "likely $", "at most $", "basis")  # fmt: skip
BASES = (
    f"Likely: from the mean length of at least {ENOUGH_ANSWERS} recorded answers of the same kind"
    " (the model's own, or other models' if it has too few), otherwise from the answer format"
    f" (plus {THOUGHT_TOKENS} tokens of reasoning). At most: from the longest possible answers."
)


PAPERS_DATA = (
    "~: data is missing; from the papers' numbers of sentences and a mean length of prompts."
)


def table_cells(task: TaskEstimate, *, is_retired: bool) -> list[str]:
    """Return the cells of the row of a task in the table of remaining questions.

    Args:
        task: Estimate of the task.
        is_retired: Whether the task's model has been retired.
    """
    cost, entry = task.estimate, task.entry
    numbers: list[float | str] = [
        cost.questions,
        cost.recorded,
        cost.to_ask,
        cost.input_tokens,
        cost.likely_output_tokens,
        format_usd(entry, cost.likely_usd).removeprefix("$"),
        format_usd(entry, cost.usd).removeprefix("$"),
    ]
    has_open_questions = bool(cost.to_ask or task.unknown)
    model = f"{task.model} (retired)" if is_retired and has_open_questions else task.model
    cells = [task.kind, model]
    cells += [format_number(task, number) for number in numbers]
    cells.append(", ".join(task.bases))
    return cells


def format_number(task: TaskEstimate, number: float | str) -> str:
    """Format a number in the row of a task in the table of remaining questions.

    A question mark states that some or all questions are not known yet. The prefix `~` states that
    the number is estimated from the size of the papers' data.
    """
    if number == "free" or not (task.unknown or task.is_rough):
        return str(number)
    if not task.estimate.questions:
        return "?"
    prefix = "~" if task.is_rough else ""
    suffix = "+?" if task.unknown else ""
    return f"{prefix}{number}{suffix}"


def format_total(tasks: list[TaskEstimate], costs: list[float | None]) -> str:
    """Format the sum of the tasks' known costs, and state whether some costs are unknown.

    Args:
        tasks: Estimates of the tasks.
        costs: Cost of each task in US dollars; None if unknown.
    """
    total = f"${sum(cost or 0.0 for cost in costs):.2f}"
    if any(task.is_rough for task in tasks):
        total = f"about {total}"
    has_unknown_questions = any(task.unknown and task.entry.paid for task in tasks)
    if None in costs or has_unknown_questions:
        return f"{total} plus unknown costs"
    return total


def jobs_table(jobs_of_models: Sequence[ModelJobs]) -> Table:
    """Return a table of the remaining jobs, with one row per model and a row of totals."""
    columns = ("model", "jobs", "on GPUs", "to download, GB")
    table = Table(*columns, title="remaining jobs", title_justify="left")
    groups: list[tuple[str, Sequence[ModelJobs]]] = [
        (model_jobs.model or "(none)", [model_jobs]) for model_jobs in jobs_of_models
    ]
    groups.append(("all", jobs_of_models))
    for group_name, group in groups:
        download_sizes = [model_jobs.download for model_jobs in group]
        known_gigabytes = f"{sum(size or 0 for size in download_sizes) / GIGABYTE:,.2f}"
        table.add_row(
            group_name,
            f"{sum(model_jobs.jobs for model_jobs in group):,}",
            f"{sum(model_jobs.on_gpus for model_jobs in group):,}",
            f"{known_gigabytes}+?" if None in download_sizes else known_gigabytes,
        )
    return table


with job(snakemake):
    planned = planned_tasks(snakemake.params.config, snakemake.input.models, snakemake.params.root)
    plan = read_plan(dry_run(snakemake.params.config, Path(snakemake.params.root)))
    files_to_remake = remade(plan)
    all_estimates = estimate_tasks(
        planned.tasks, planned.settings, files_to_remake, on_papers_data=planned.on_papers_data
    )
    # The table omits models that have ended, because `list_ending_models` lists them below. Retired
    # models remain in the table, marked.
    ended_models = set()
    for name, entry in planned.models.items():
        if entry.ends and not entry.retired and planned.settings.end_reason(entry):
            ended_models.add(name)
    estimates = [task for task in all_estimates if task.model not in ended_models]
    table = Table(title="remaining questions", title_justify="left", caption_justify="left")
    for column in COLUMNS:
        table.add_column(column, no_wrap=column == "model")
    for task in estimates:
        is_retired = bool(planned.settings.end_reason(planned.models[task.model]))
        table.add_row(*table_cells(task, is_retired=is_retired))
    console = Console(width=None if Console().is_terminal else 150, soft_wrap=True)
    console.print(table)
    console.print(BASES)
    if any(task.is_rough for task in estimates):
        console.print(PAPERS_DATA)
    likely = format_total(estimates, [task.estimate.likely_usd for task in estimates])
    most = format_total(estimates, [task.estimate.usd for task in estimates])
    cap = planned.settings.max_cost_usd
    console.print(f"total: likely {likely}, at most {most}; llm.max_cost_usd is ${cap:.2f}")
    if warning := cap_warning(estimates, planned.settings):
        console.print(warning)
    console.print(jobs_table(jobs_by_model(plan, load_registry(snakemake.input.models))))
    open_tasks = [task for task in all_estimates if task.estimate.to_ask or task.unknown]
    for model in dict.fromkeys(task.model for task in open_tasks):
        if reasons := blocking_reasons(planned.models[model], planned.settings):
            console.print(f"{model} cannot be asked: {', '.join(reasons)}")
    for line in planned.messages_on_missing_files(files_to_remake, snakemake.params.options):
        console.print(line)
    for line in list_ending_models(all_estimates, planned.models):
        print(line, file=sys.stderr)
