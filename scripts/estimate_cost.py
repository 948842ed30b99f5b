"""Print what is left to ask and to run, and what it takes; ask nothing."""

import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from pieline.core.jobs import start_log
from pieline.llm.estimates import (
    ENOUGH_ANSWERS,
    THOUGHT_TOKENS,
    TaskEstimate,
    blocking_reasons,
    cap_warning,
    estimate_tasks,
    format_usd,
    record_now,
)
from pieline.models.fetching import GIGABYTE
from pieline.models.registry import load_registry
from pieline.models.sizing import EFFICIENCY, GPU
from pieline.planned import planned_tasks
from pieline.resources import ModelResources, dry_run, read_plan, remade, resources

COLUMNS = ("asked for", "model", "questions", "recorded", "to ask", "tokens in", "tokens out",
           "likely $", "at most $", "by")  # fmt: skip
BASES = (
    f"Likely, by the mean length of at least {ENOUGH_ANSWERS} recorded answers of one kind (own, or"
    " others' if the model has too few), else by the form that is asked for (and"
    f" {THOUGHT_TOKENS} tokens of thoughts). At most, by the longest answers."
)
ASSUMED = (
    f"GPU-hours on {GPU} at {EFFICIENCY:.0%} of its peak, from parameters and tokens. Disk: trained"
    " weights and vectors, besides what is downloaded. A question mark: texts are not made yet, or"
    " those here are of another configuration, or models.yaml states no size."
)


def row(found: TaskEstimate, *, retired: bool) -> list[str]:
    """A row of the table; a question mark stands for questions that are not known yet."""
    cost, entry = found.estimate, found.entry

    def number(known: float | str) -> str:
        more = found.unknown and known != "free"
        return ("?" if not cost.questions else f"{known}+?") if more else str(known)

    return [
        found.kind,
        f"{found.model} (retired)" if retired and (cost.to_ask or found.unknown) else found.model,
        number(cost.questions),
        number(cost.recorded),
        number(cost.to_ask),
        number(cost.input_tokens),
        number(cost.likely_output_tokens),
        number(format_usd(entry, cost.likely_usd).removeprefix("$")),
        number(format_usd(entry, cost.usd).removeprefix("$")),
        ", ".join(found.bases),
    ]


def in_all(found: list[TaskEstimate], sums: list[float | None]) -> str:
    """The sum of what is known."""
    known = f"${sum(usd or 0.0 for usd in sums):.2f}"
    all_known = None not in sums and not any(item.unknown and item.entry.paid for item in found)
    return known if all_known else f"{known} and what is not known"


def total(values: Sequence[float | None], unit: float = 1) -> str:
    """The sum in a unit, with two decimals; a question mark stands for what is unknown."""
    known = sum(value or 0 for value in values)
    text = f"{known / unit:,.2f}"
    return text if None not in values else f"{text}+?" if known else "?"


def resources_table(lines: Sequence[ModelResources]) -> Table:
    """What is left to run, by model and in all."""
    columns = ("model", "jobs", "GPU-hours", "to download, GB", "disk, GB")
    title = "what is left to run: estimated from sizes, nothing is measured"
    table = Table(*columns, title=title, title_justify="left", caption_justify="left")
    for name, group in [*((line.model or "(none)", [line]) for line in lines), ("all", lines)]:
        jobs = sum(line.jobs for line in group)
        hours = total([line.gpu_hours for line in group])
        download, disk = (
            total([getattr(line, field) for line in group], GIGABYTE)
            for field in ("download", "disk")
        )
        table.add_row(name, f"{jobs:,}", hours, download, disk)
    return table


start_log(snakemake.log[0])
planned = planned_tasks(snakemake.params.config, snakemake.input.models, snakemake.params.root)
plan = read_plan(dry_run(snakemake.params.config, Path(snakemake.params.root)))
stale = remade(plan)
found = estimate_tasks(planned.tasks, planned.settings, stale)
table = Table(title="what is left to ask", title_justify="left", caption_justify="left")
for name in COLUMNS:
    table.add_column(name, no_wrap=name == "model")
for item in found:
    table.add_row(*row(item, retired=planned.settings.is_retired(planned.models[item.model])))
console = Console(width=None if Console().is_terminal else 150, soft_wrap=True)
console.print(table)
console.print(BASES)
likely = in_all(found, [item.estimate.likely_usd for item in found])
most = in_all(found, [item.estimate.usd for item in found])
cap = planned.settings.max_cost_usd
console.print(f"likely {likely}, at most {most} in all; llm.max_cost_usd is ${cap:.2f}")
if warning := cap_warning(found, planned.settings):
    console.print(warning)
registry = load_registry(snakemake.input.models)
console.print(resources_table(resources(plan, registry, found, snakemake.params.epochs)))
console.print(ASSUMED)
for model in dict.fromkeys(item.model for item in found if item.estimate.to_ask or item.unknown):
    if missing := blocking_reasons(planned.models[model], planned.settings):
        console.print(f"{model} cannot be asked: {', '.join(missing)}")
for line in planned.not_made(stale):
    console.print(line)
for line in record_now(found, planned.models):
    print(line, file=sys.stderr)
