"""Write an IdioLink run with the printed scores; it is a stand-in, not a result."""

from pathlib import Path

from pieline.core.jobs import job
from pieline.core.records import load_jsonl
from pieline.studies.idiolink.predictions.runs import write_run
from pieline.studies.idiolink.records import Document, Query
from rehearsal.ranks import printed_run

with job(snakemake):
    name, *training = snakemake.wildcards.model.split("+")
    run = printed_run(
        load_jsonl(snakemake.input.queries, Query),
        load_jsonl(snakemake.input.documents, Document),
        model=snakemake.params.printed_as or name,
        query_mode=snakemake.wildcards.query_mode,
        composition=snakemake.wildcards.index.partition("-")[2] or "full",
        train_mode=training[0] if training else None,
        seed=int(snakemake.wildcards.seed),
        seeds=snakemake.params.seeds,
        published=Path(snakemake.input.printed[0]).parent,
        top_k=snakemake.params.top_k,
    )
    write_run(snakemake.output[0], run, tag=snakemake.wildcards.model)
