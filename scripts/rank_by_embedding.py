"""Rank the documents for each query by the cosine similarity of the embeddings."""

import numpy as np

from pieline.core.jobs import job
from pieline.core.records import iterate_jsonl, load_jsonl
from pieline.studies.idiolink.predictions.rankings import rank_by_cosine, write_run
from pieline.studies.idiolink.records import Document, Query

with job(snakemake):
    row_by_id = {}
    for row, document in enumerate(iterate_jsonl(snakemake.input.all_documents, Document)):
        row_by_id[document.id] = row
    document_ids = [document.id for document in iterate_jsonl(snakemake.input.documents, Document)]
    runs = rank_by_cosine(
        [query.id for query in load_jsonl(snakemake.input.queries, Query)],
        [np.load(vectors) for vectors in snakemake.input.query_vectors],
        document_ids,
        snakemake.input.document_vectors,
        np.array([row_by_id[document_id] for document_id in document_ids]),
        top_k=snakemake.params.top_k,
    )
    for output, run in zip(snakemake.output, runs, strict=True):
        write_run(output, run, tag=snakemake.wildcards.model)
