"""List what the models of a configuration need from the hub, and on request fetch it."""

from rich.console import Console
from rich.table import Table

from pieline.core.jobs import start_log
from pieline.models.fetching import GIGABYTE, fetch, obstacles, required_checkpoints, summary
from pieline.planned import planned_entries


def gigabytes(size: int | None) -> str:
    """Bytes for people."""
    return "?" if size is None else f"{size / GIGABYTE:.2f}"


start_log(snakemake.log[0])
found = required_checkpoints(
    planned_entries(snakemake.params.config, snakemake.input.models, snakemake.params.root)
)
table = Table("models", "repository", "revision", "GB", "to download", "state")
for item in found:
    revision = (item.checkpoint.revision or "main")[:8]
    sizes = gigabytes(item.size), gigabytes(item.missing)
    table.add_row(", ".join(item.models), item.checkpoint.repository, revision, *sizes, item.state)
console = Console(width=None if Console().is_terminal else 150, soft_wrap=True)
if found:
    console.print(table)
console.print(summary(found))
if snakemake.params.fetch:
    for line in fetch(found):
        print(line, flush=True)
else:
    for line in obstacles(found):
        console.print(line, markup=False)
