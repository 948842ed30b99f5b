"""Print the remaining questions and jobs with their estimated costs; ask no model."""

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


def row(task: TaskEstimate, *, retired: bool) -> list[str]:
    """Return a task's row of the table.

    A question mark marks numbers that are not known yet, `~` those of the papers' data.
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
    model = f"{task.model} (retired)" if retired and (cost.to_ask or task.unknown) else task.model
    cells = [task.kind, model]
    cells += [format_number(task, number) for number in numbers]
    cells.append(", ".join(task.bases))
    return cells


def format_number(task: TaskEstimate, number: float | str) -> str:
    """Format a number of a task, marked if it is not known yet or rough (see `row`)."""
    if number == "free" or not (task.unknown or task.is_rough):
        return str(number)
    if not task.estimate.questions:
        return "?"
    before = "~" if task.is_rough else ""
    after = "+?" if task.unknown else ""
    return f"{before}{number}{after}"


def format_total(tasks: list[TaskEstimate], sums: list[float | None]) -> str:
    """Format the sum of the known costs; state if some costs are unknown."""
    known = f"${sum(usd or 0.0 for usd in sums):.2f}"
    if any(item.is_rough for item in tasks):
        known = f"about {known}"
    all_known = None not in sums and not any(item.unknown and item.entry.paid for item in tasks)
    return known if all_known else f"{known} plus unknown costs"


def jobs_table(lines: Sequence[ModelJobs]) -> Table:
    """Return the table of remaining jobs by model, with totals."""
    columns = ("model", "jobs", "on GPUs", "to download, GB")
    table = Table(*columns, title="remaining jobs", title_justify="left")
    groups: list[tuple[str, Sequence[ModelJobs]]] = [
        (line.model or "(none)", [line]) for line in lines
    ]
    groups.append(("all", lines))
    for name, group in groups:
        sizes = [line.download for line in group]
        known = f"{sum(size or 0 for size in sizes) / GIGABYTE:,.2f}"
        table.add_row(
            name,
            f"{sum(line.jobs for line in group):,}",
            f"{sum(line.on_gpus for line in group):,}",
            f"{known}+?" if None in sizes else known,
        )
    return table


with job(snakemake):
    planned = planned_tasks(snakemake.params.config, snakemake.input.models, snakemake.params.root)
    plan = read_plan(dry_run(snakemake.params.config, Path(snakemake.params.root)))
    stale = remade(plan)
    every_estimate = estimate_tasks(
        planned.tasks, planned.settings, stale, on_papers_data=planned.on_papers_data
    )
    # `list_ending_models` names the models that have ended. Retired models remain in the table,
    # marked.
    ended = {
        name
        for name, entry in planned.models.items()
        if entry.ends and not entry.retired and planned.settings.end_reason(entry)
    }
    task_estimates = [item for item in every_estimate if item.model not in ended]
    table = Table(title="remaining questions", title_justify="left", caption_justify="left")
    for name in COLUMNS:
        table.add_column(name, no_wrap=name == "model")
    for item in task_estimates:
        table.add_row(
            *row(item, retired=bool(planned.settings.end_reason(planned.models[item.model])))
        )
    console = Console(width=None if Console().is_terminal else 150, soft_wrap=True)
    console.print(table)
    console.print(BASES)
    if any(item.is_rough for item in task_estimates):
        console.print(PAPERS_DATA)
    likely = format_total(task_estimates, [item.estimate.likely_usd for item in task_estimates])
    most = format_total(task_estimates, [item.estimate.usd for item in task_estimates])
    cap = planned.settings.max_cost_usd
    console.print(f"total: likely {likely}, at most {most}; llm.max_cost_usd is ${cap:.2f}")
    if warning := cap_warning(task_estimates, planned.settings):
        console.print(warning)
    console.print(jobs_table(jobs_by_model(plan, load_registry(snakemake.input.models))))
    for model in dict.fromkeys(
        item.model for item in every_estimate if item.estimate.to_ask or item.unknown
    ):
        if missing := blocking_reasons(planned.models[model], planned.settings):
            console.print(f"{model} cannot be asked: {', '.join(missing)}")
    for line in planned.missing_files(stale, snakemake.params.options):
        console.print(line)
    for line in list_ending_models(every_estimate, planned.models):
        print(line, file=sys.stderr)
