"""Print how the recorded answers of the configured language models were parsed, offline."""

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from pieline.configured_tasks import planned_tasks
from pieline.core.jobs import job
from pieline.llm.readings import count_forms

STYLES = {"ok": "", "repaired": "yellow"}

with job(snakemake):
    planned = planned_tasks(snakemake.params.config, snakemake.input.models, snakemake.params.root)
    table = Table(
        "task", "model", "outcome", "parsed by", "answers", "examples",
        title="recorded answers by form", title_justify="left", show_lines=True,
    )  # fmt: skip
    for item in count_forms(planned.tasks):
        table.add_row(
            item.kind,
            item.model,
            item.outcome,
            escape(item.rule),
            str(item.answers),
            escape("\n".join(item.examples)),
            style=STYLES.get(item.outcome, "red"),
        )
    console = Console(width=None if Console().is_terminal else 160)
    console.print(table)
    console.print(f"{table.row_count} forms; unreadable answers count as unknown, never as no")
