"""Validate one split of IdioLink; write its documents, queries, qrels and manifest."""

import argparse
from pathlib import Path

from pieline.core.errors import run_command
from pieline.core.upstream import is_released, load_upstream
from pieline.studies.idiolink.datasets.dataset import IdiolinkDataset
from pieline.studies.idiolink.raw.released import read_texts
from pieline.studies.idiolink.records import Document, Query


def main() -> None:
    """Parse the command line and write the dataset."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--split", required=True)
    parser.add_argument("--documents", type=Path, required=True, help="indexes.json")
    parser.add_argument("--queries", type=Path, required=True, help="queries.json")
    parser.add_argument("--upstream", type=Path, required=True, help="data/upstream.yaml")
    parser.add_argument("--output", type=Path, required=True, help="folder to write")
    arguments = parser.parse_args()

    raw = {
        f"idiolink/{arguments.split}/indexes.json": arguments.documents,
        f"idiolink/{arguments.split}/queries.json": arguments.queries,
    }
    dataset = IdiolinkDataset(
        split=arguments.split,
        composition="full",
        released=is_released(raw, load_upstream(arguments.upstream)),
        documents=read_texts(arguments.documents, Document),
        queries=read_texts(arguments.queries, Query),
    )
    dataset.save(arguments.output)


if __name__ == "__main__":
    run_command(main)
