"""Rank the documents for each query by cosine similarity of their embeddings."""

import numpy as np

from pieline.core.jobs import start_log
from pieline.core.records import load_jsonl
from pieline.studies.idiolink.predictions.runs import cosine_scores_of_file, rank, write_run
from pieline.studies.idiolink.records import Document, Query

start_log(snakemake.log[0])
row = {text.id: i for i, text in enumerate(load_jsonl(snakemake.input.all_documents, Document))}
names = [document.id for document in load_jsonl(snakemake.input.documents, Document)]
rows = [row[name] for name in names]
run = rank(
    [query.id for query in load_jsonl(snakemake.input.queries, Query)],
    cosine_scores_of_file(
        np.load(snakemake.input.query_vectors), snakemake.input.document_vectors, rows
    ),
    names,
    top_k=snakemake.params.top_k,
)
write_run(snakemake.output[0], run, tag=snakemake.wildcards.model)
