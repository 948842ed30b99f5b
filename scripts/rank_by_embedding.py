"""Rank the documents for each query by cosine similarity of their embeddings."""

import argparse
from pathlib import Path

import numpy as np

from pieline.core.errors import run_command
from pieline.core.records import load_jsonl
from pieline.studies.idiolink.predictions.runs import cosine_scores, rank, write_run
from pieline.studies.idiolink.records import Document, Query


def main() -> None:
    """Parse the command line, rank, write the run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all-documents", type=Path, required=True, help="rows of the vectors")
    parser.add_argument("--documents", type=Path, required=True, help="those in the index")
    parser.add_argument("--queries", type=Path, required=True)
    parser.add_argument("--document-vectors", type=Path, required=True)
    parser.add_argument("--query-vectors", type=Path, required=True)
    parser.add_argument("--top-k", type=int, required=True)
    parser.add_argument("--tag", required=True, help="name of the run")
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()

    row = {text.id: i for i, text in enumerate(load_jsonl(arguments.all_documents, Document))}
    names = [document.id for document in load_jsonl(arguments.documents, Document)]
    vectors = np.load(arguments.document_vectors)[[row[name] for name in names]]
    run = rank(
        [query.id for query in load_jsonl(arguments.queries, Query)],
        cosine_scores(np.load(arguments.query_vectors), vectors),
        names,
        top_k=arguments.top_k,
    )
    write_run(arguments.output, run, tag=arguments.tag)


if __name__ == "__main__":
    run_command(main)
