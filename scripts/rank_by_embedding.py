"""Rank the documents for each query by cosine similarity of their embeddings."""

from pathlib import Path

import numpy as np

from pieline.core.program import Options, program
from pieline.core.records import load_jsonl
from pieline.studies.idiolink.predictions.runs import cosine_scores_of_file, rank, write_run
from pieline.studies.idiolink.records import Document, Query


@program(
    all_documents=(Path, "rows of the vectors"), documents=(Path, "those in the index"),
    queries=Path, document_vectors=(Path, "npy file"),
    query_vectors=(Path, "npy file"), top_k=int, tag=str, output=Path,
)  # fmt: skip
def main(it: Options) -> None:
    row = {text.id: i for i, text in enumerate(load_jsonl(it.all_documents, Document))}
    names = [document.id for document in load_jsonl(it.documents, Document)]
    rows = [row[name] for name in names]
    run = rank(
        [query.id for query in load_jsonl(it.queries, Query)],
        cosine_scores_of_file(np.load(it.query_vectors), it.document_vectors, rows),
        names,
        top_k=it.top_k,
    )
    write_run(it.output, run, tag=it.tag)
