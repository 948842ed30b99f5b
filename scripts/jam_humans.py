"""Score two people's labels of hard variants."""

import argparse
from pathlib import Path

from pieline.core.errors import run_command
from pieline.core.files import digests, write_json
from pieline.studies.jam.datasets.dataset import load_manifest
from pieline.studies.jam.datasets.sentences import load_sentences
from pieline.studies.jam.metrics.humans import human_metrics, read_labels


def main() -> None:
    """Parse the command line and score."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--labels", type=Path, required=True, help="CSV")
    parser.add_argument("--sentences", type=Path, required=True)
    parser.add_argument("--manifest", type=Path, required=True, help="of the dataset")
    parser.add_argument("--output", type=Path, required=True)
    it = parser.parse_args()
    metrics = human_metrics(
        read_labels(it.labels),
        load_sentences(it.sentences),
        where=it.labels,
        released=load_manifest(it.manifest).is_released,
        computed_from=digests([it.labels, it.sentences]),
    )
    write_json(it.output, metrics.model_dump())


if __name__ == "__main__":
    run_command(main)
