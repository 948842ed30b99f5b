"""Write what encoders learn from: ID10M's train and dev, or dev alone cut in two."""

import argparse
from pathlib import Path

from pieline.core.errors import run_command
from pieline.core.files import write_text
from pieline.studies.jam.datasets.tagging_data import TrainingSplits, hold_out, thin_out
from pieline.studies.jam.raw.id10m import read_id10m, write_id10m

SEED = 0


def main() -> None:
    """Parse the command line and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--train", type=Path, nargs="?", help="ID10M's train split")
    parser.add_argument("--dev", type=Path, required=True, help="ID10M's dev split")
    parser.add_argument("--negatives", type=float, nargs="?", help="kept for each with an idiom")
    parser.add_argument("--output-train", type=Path, required=True)
    parser.add_argument("--output-dev", type=Path, required=True)
    it = parser.parse_args()

    dev = read_id10m(it.dev, split="dev")
    splits = hold_out(dev, seed=SEED)
    if it.train:
        splits = TrainingSplits(read_id10m(it.train, split="train"), dev)
    train = thin_out(splits.train, per_idiom=it.negatives, seed=SEED)
    write_text(it.output_train, write_id10m(train))
    write_text(it.output_dev, write_id10m(splits.dev))


if __name__ == "__main__":
    run_command(main)
