"""Draw one training tuple a query of a split, or take over the released ones."""

import argparse
from pathlib import Path

from pieline.core.errors import run_command
from pieline.core.records import load_jsonl, save_jsonl
from pieline.studies.idiolink.datasets.tuples import read_released_tuples, sample_tuples
from pieline.studies.idiolink.records import Document, Query


def main() -> None:
    """Parse the command line and write the tuples."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=Path, required=True)
    parser.add_argument("--queries", type=Path, required=True)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--seed", type=int, help="draw by this seed")
    source.add_argument("--released", type=Path, help="file of released tuples")
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()

    queries = load_jsonl(arguments.queries, Query)
    documents = load_jsonl(arguments.documents, Document)
    if arguments.released:
        tuples = read_released_tuples(arguments.released, queries, documents)
    else:
        tuples = sample_tuples(queries, documents, seed=arguments.seed)
    save_jsonl(arguments.output, tuples)


if __name__ == "__main__":
    run_command(main)
