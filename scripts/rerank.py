"""Re-rank the documents of a first-stage run with a cross-encoder."""

from pieline.core.jobs import job
from pieline.core.records import load_jsonl
from pieline.models.rankers import RerankerEntry
from pieline.studies.idiolink.predictions.rankers import load_reranker, rerank
from pieline.studies.idiolink.predictions.rankings import read_run, write_run
from pieline.studies.idiolink.records import Document, Query

with job(snakemake):
    entry = RerankerEntry.from_spec(snakemake.params.spec)
    run = rerank(
        load_reranker(entry),
        read_run(snakemake.input.first_stage),
        load_jsonl(snakemake.input.queries, Query),
        load_jsonl(snakemake.input.documents, Document),
        entry,
        mode=snakemake.wildcards.query_mode,
    )
    write_run(snakemake.output[0], run, tag=snakemake.wildcards.model)
