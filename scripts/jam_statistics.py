"""Count what each room of ID10M-JAM left."""

import argparse
from pathlib import Path

from pieline.core.errors import run_command
from pieline.core.files import digests, read_json, write_json
from pieline.core.records import load_jsonl
from pieline.studies.jam.datasets.dataset import load_manifest
from pieline.studies.jam.metrics.statistics import jam_statistics
from pieline.studies.jam.raw.id10m import read_id10m
from pieline.studies.jam.records import Original


def main() -> None:
    """Parse the command line and count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--originals", type=Path, required=True)
    parser.add_argument("--report", type=Path, required=True, help="of the originals")
    parser.add_argument(
        "--train", type=Path, nargs="?", help="train_<language>.tsv, if there is one"
    )
    parser.add_argument("--manifest", type=Path, nargs="?", help="of the dataset, if there is one")
    parser.add_argument("--output", type=Path, required=True)
    it = parser.parse_args()
    files = [path for path in (it.originals, it.report, it.train, it.manifest) if path]
    statistics = jam_statistics(
        read_json(it.report),
        load_jsonl(it.originals, Original),
        train_sentences=len(read_id10m(it.train, split="train")) if it.train else None,
        manifest=load_manifest(it.manifest) if it.manifest else None,
        computed_from=digests(files),
    )
    write_json(it.output, statistics.model_dump())


if __name__ == "__main__":
    run_command(main)
