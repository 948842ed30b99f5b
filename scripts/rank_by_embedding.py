"""Rank the documents for each query by cosine similarity of their embeddings."""

import numpy as np

from pieline.core.jobs import job
from pieline.core.records import load_jsonl
from pieline.studies.idiolink.predictions.runs import cosine_scores_of_file, rank, write_run
from pieline.studies.idiolink.records import Document, Query

with job(snakemake):
    row = {text.id: i for i, text in enumerate(load_jsonl(snakemake.input.all_documents, Document))}
    documents = [document.id for document in load_jsonl(snakemake.input.documents, Document)]
    queries = [query.id for query in load_jsonl(snakemake.input.queries, Query)]
    rows = [row[name] for name in documents]
    for vectors, output in zip(snakemake.input.query_vectors, snakemake.output, strict=True):
        scores = cosine_scores_of_file(np.load(vectors), snakemake.input.document_vectors, rows)
        run = rank(queries, scores, documents, top_k=snakemake.params.top_k)
        write_run(output, run, tag=snakemake.wildcards.model)
