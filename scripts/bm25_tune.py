"""Choose BM25's k1 and b on the validation split by nDCG@10."""

import argparse
from pathlib import Path

from pieline.core.errors import run_command
from pieline.core.files import write_json
from pieline.core.records import load_jsonl
from pieline.studies.idiolink.metrics.ranking import ndcg_at_10
from pieline.studies.idiolink.predictions.bm25 import tune
from pieline.studies.idiolink.raw.released import meaning_qrels
from pieline.studies.idiolink.records import Document, Query


def main() -> None:
    """Parse the command line and tune."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=Path, required=True)
    parser.add_argument("--queries", type=Path, required=True)
    parser.add_argument("--query-mode", choices=["sentence", "span"], required=True)
    parser.add_argument("--k1", type=float, nargs="+", required=True)
    parser.add_argument("--b", type=float, nargs="+", required=True)
    parser.add_argument("--top-k", type=int, required=True)
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()

    documents = load_jsonl(arguments.documents, Document)
    queries = load_jsonl(arguments.queries, Query)
    qrels = meaning_qrels(queries, documents)
    tuning = tune(
        documents,
        queries,
        query_mode=arguments.query_mode,
        k1=arguments.k1,
        b=arguments.b,
        top_k=arguments.top_k,
        ndcg_at_10=lambda run: ndcg_at_10(run, qrels),
    )
    write_json(arguments.output, tuning.model_dump())


if __name__ == "__main__":
    run_command(main)
