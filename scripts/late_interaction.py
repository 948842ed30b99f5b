"""Rank the documents for each query with a late-interaction model, in all query modes."""

from pathlib import Path

from pieline.core.jobs import job
from pieline.core.records import load_jsonl
from pieline.models.rankers import LateInteractionEntry
from pieline.studies.idiolink.predictions.rankers import load_late_interaction, search
from pieline.studies.idiolink.predictions.rankings import write_run
from pieline.studies.idiolink.records import Document, Query

with job(snakemake):
    entry = LateInteractionEntry.from_spec(snakemake.params.spec)
    runs = search(
        load_late_interaction(entry),
        load_jsonl(snakemake.input.queries, Query),
        load_jsonl(snakemake.input.documents, Document),
        entry,
        top_k=snakemake.params.top_k,
    )
    for output in snakemake.output:
        write_run(output, runs[Path(output).parent.name], tag=snakemake.wildcards.model)
