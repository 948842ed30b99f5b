"""Draw one training tuple per query of a split."""

from pieline.core.jobs import finish_job, start_job
from pieline.core.records import load_jsonl, save_jsonl
from pieline.studies.idiolink.datasets.tuples import sample_tuples
from pieline.studies.idiolink.records import Document, Query

start_job(snakemake)
tuples = sample_tuples(
    load_jsonl(snakemake.input.queries, Query),
    load_jsonl(snakemake.input.documents, Document),
    seed=int(snakemake.wildcards.seed),
    hard=snakemake.params.hard,
    soft=snakemake.params.soft,
)
save_jsonl(snakemake.output[0], tuples)
finish_job(snakemake)
