"""Read the training tuples that the authors released."""

from pieline.core.jobs import finish_job, start_job
from pieline.core.records import load_jsonl, save_jsonl
from pieline.studies.idiolink.datasets.tuples import read_released_tuples
from pieline.studies.idiolink.records import Document, Query

start_job(snakemake)
tuples = read_released_tuples(
    snakemake.input.released,
    load_jsonl(snakemake.input.queries, Query),
    load_jsonl(snakemake.input.documents, Document),
    hard=snakemake.params.hard,
    soft=snakemake.params.soft,
)
save_jsonl(snakemake.output[0], tuples)
finish_job(snakemake)
