"""Read the authors' training tuples, or draw one tuple per query of a split."""

from pieline.core.jobs import job, optional
from pieline.core.records import load_jsonl, save_jsonl
from pieline.studies.idiolink.datasets.tuples import read_released_tuples, sample_tuples
from pieline.studies.idiolink.records import Document, Query

with job(snakemake):
    queries = load_jsonl(snakemake.input.queries, Query)
    documents = load_jsonl(snakemake.input.documents, Document)
    if released := optional(snakemake.input.released):
        tuples = read_released_tuples(released, queries, documents)
    else:
        tuples = sample_tuples(queries, documents, seed=snakemake.params.seed)
    save_jsonl(snakemake.output[0], tuples)
