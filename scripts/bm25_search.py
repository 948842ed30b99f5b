"""Rank the documents for each query with BM25."""

from pieline.core.files import read_json
from pieline.core.jobs import job
from pieline.core.records import load_jsonl
from pieline.studies.idiolink.predictions.bm25 import build_index, search
from pieline.studies.idiolink.predictions.rankings import write_run
from pieline.studies.idiolink.records import Document, Query, Tuning

with job(snakemake):
    documents = load_jsonl(snakemake.input.documents, Document)
    run = search(
        build_index(documents, Tuning.model_validate(read_json(snakemake.input.tuning)).chosen),
        documents,
        load_jsonl(snakemake.input.queries, Query),
        query_mode=snakemake.wildcards.query_mode,
        top_k=snakemake.params.top_k,
    )
    write_run(snakemake.output[0], run, tag=snakemake.wildcards.model)
