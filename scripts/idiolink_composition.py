"""Leave usages out of an IdioLink index (the index-composition ablation)."""

import argparse
from pathlib import Path

from pieline.core.errors import run_command
from pieline.studies.idiolink.datasets.dataset import IdiolinkDataset
from pieline.studies.idiolink.raw.released import COMPOSITIONS


def main() -> None:
    """Parse the command line and write the dataset."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--composition", choices=sorted(COMPOSITIONS), required=True)
    parser.add_argument("--dataset", type=Path, required=True, help="folder of the full split")
    parser.add_argument("--output", type=Path, required=True, help="folder to write")
    arguments = parser.parse_args()
    full = IdiolinkDataset.load(arguments.dataset)
    full.composed(arguments.composition).save(arguments.output)


if __name__ == "__main__":
    run_command(main)
