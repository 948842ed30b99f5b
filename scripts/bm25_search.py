"""Rank the documents for each query by BM25."""

import argparse
from pathlib import Path

from pieline.core.errors import run_command
from pieline.core.files import read_json
from pieline.core.records import load_jsonl
from pieline.studies.idiolink.predictions.bm25 import build_index, search
from pieline.studies.idiolink.predictions.bm25_tuning import Tuning
from pieline.studies.idiolink.predictions.runs import write_run
from pieline.studies.idiolink.records import Document, Query


def main() -> None:
    """Parse the command line, search, write the run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=Path, required=True)
    parser.add_argument("--queries", type=Path, required=True)
    parser.add_argument("--tuning", type=Path, required=True, help="output of bm25_tune")
    parser.add_argument("--query-mode", choices=["sentence", "span"], required=True)
    parser.add_argument("--top-k", type=int, required=True)
    parser.add_argument("--tag", required=True, help="name of the run")
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()

    documents = load_jsonl(arguments.documents, Document)
    run = search(
        build_index(documents, Tuning.model_validate(read_json(arguments.tuning)).chosen),
        documents,
        load_jsonl(arguments.queries, Query),
        query_mode=arguments.query_mode,
        top_k=arguments.top_k,
    )
    write_run(arguments.output, run, tag=arguments.tag)


if __name__ == "__main__":
    run_command(main)
