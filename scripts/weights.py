"""List the Hugging Face Hub files that the configured models need, and fetch them on request."""

from pathlib import Path

from rich.console import Console
from rich.table import Table

from pieline.configured_tasks import planned_entries
from pieline.core.jobs import job
from pieline.models.fetching import (
    GIGABYTE,
    fetch,
    obstacles,
    pin_commits,
    required_checkpoints,
    summary,
)


def gigabytes(size: int | None) -> str:
    """Format a size in bytes as gigabytes; return a question mark if the size is not known."""
    return "?" if size is None else f"{size / GIGABYTE:.2f}"


with job(snakemake):
    repositories = required_checkpoints(
        planned_entries(snakemake.params.config, snakemake.input.models, snakemake.params.root)
    )
    pins: list[str] = []
    if snakemake.params.fetch:
        repositories, pins = pin_commits(repositories, Path(snakemake.input.models))
    table = Table("models", "repository", "revision", "GB", "to download", "state")
    for repository in repositories:
        table.add_row(
            ", ".join(repository.models),
            repository.checkpoint.repository,
            (repository.checkpoint.revision or "main")[:8],
            gigabytes(repository.size),
            gigabytes(repository.missing),
            repository.state,
        )
    console = Console(width=None if Console().is_terminal else 150, soft_wrap=True)
    if repositories:
        console.print(table)
    console.print(summary(repositories))
    for line in pins:
        console.print(line, markup=False)
    if snakemake.params.fetch:
        for line in fetch(repositories):
            print(line, flush=True)
    else:
        for line in obstacles(repositories):
            console.print(line, markup=False)
