"""Apply human verdicts to hard variants and select: the dataset, its manifest, what is disputed."""

import argparse
import json
from pathlib import Path

from pieline.core.errors import run_command
from pieline.core.files import read_json, write_json
from pieline.core.records import load_jsonl, save_jsonl
from pieline.studies.jam.datasets.dataset import build_dataset
from pieline.studies.jam.records import Original, Variant
from pieline.studies.jam.variants.label_studio import (
    read_adjudications,
    read_export,
    write_adjudications,
)


def main() -> None:
    """Parse the command line and build."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--originals", type=Path, required=True)
    parser.add_argument("--report", type=Path, required=True, help="of the originals")
    parser.add_argument("--variants", type=Path, required=True)
    parser.add_argument("--annotations", nargs="*", default=[], help="Label Studio exports")
    parser.add_argument("--adjudications", nargs="?", help="decisions on disputed variants")
    parser.add_argument("--selection", required=True, help="how to select, as JSON")
    parser.add_argument("--dataset", type=Path, required=True, help="JSONL to write")
    parser.add_argument("--manifest", type=Path, required=True, help="JSON to write")
    parser.add_argument("--disputed", type=Path, required=True, help="TSV to be filled in")
    it = parser.parse_args()

    dataset = build_dataset(
        load_jsonl(it.originals, Original),
        load_jsonl(it.variants, Variant),
        reviews=[review for path in it.annotations for review in read_export(path)],
        adjudications=read_adjudications(it.adjudications) if it.adjudications else [],
        where=", ".join([*it.annotations, it.adjudications or ""]).strip(", "),
        originals_are_released=read_json(it.report)["originals_are_released"],
        **json.loads(it.selection),
    )
    save_jsonl(it.dataset, dataset.sentences)
    write_json(it.manifest, dataset.manifest.model_dump())
    write_adjudications(it.disputed, dataset.manifest.disputed)


if __name__ == "__main__":
    run_command(main)
