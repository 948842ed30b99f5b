"""Rank the documents for each query with a late-interaction model, in all query modes."""

from pathlib import Path

import torch

from pieline.core.evidence import write_evidence
from pieline.core.jobs import start_log
from pieline.core.records import load_jsonl
from pieline.models.rankers import LateInteractionEntry
from pieline.studies.idiolink.predictions.rankers import load_late_interaction, search
from pieline.studies.idiolink.predictions.runs import write_run
from pieline.studies.idiolink.records import Document, Query

start_log(snakemake.log[0])
entry = LateInteractionEntry.from_spec(snakemake.params.spec)
torch.set_num_threads(snakemake.threads)
runs = search(
    load_late_interaction(entry),
    load_jsonl(snakemake.input.queries, Query),
    load_jsonl(snakemake.input.documents, Document),
    entry,
    top_k=snakemake.params.top_k,
)
for output, evidence in zip(snakemake.output.runs, snakemake.output.evidence, strict=True):
    write_run(output, runs[Path(output).parent.name], tag=snakemake.wildcards.model)
    write_evidence(evidence, files=[output], made_from=snakemake.input)
