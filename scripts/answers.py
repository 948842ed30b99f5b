"""Print how the recorded answers of the configured language models are parsed; ask no model."""

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from pieline.configured_tasks import planned_tasks
from pieline.core.jobs import job
from pieline.llm.readings import count_forms

STYLES = {"ok": "", "repaired": "yellow"}
"""Style of a table row by outcome; rows of other outcomes are red."""

with job(snakemake):
    planned = planned_tasks(snakemake.params.config, snakemake.input.models, snakemake.params.root)
    table = Table(
        "task", "model", "outcome", "parsed by", "answers", "examples",
        title="recorded answers by form", title_justify="left", show_lines=True,
    )  # fmt: skip
    for form in count_forms(planned.tasks):
        table.add_row(
            form.kind,
            form.model,
            form.outcome,
            escape(form.rule),
            str(form.answers),
            escape("\n".join(form.examples)),
            style=STYLES.get(form.outcome, "red"),
        )
    console = Console(width=None if Console().is_terminal else 160)
    console.print(table)
    console.print(f"{table.row_count} forms; unreadable answers count as unknown, never as no")
