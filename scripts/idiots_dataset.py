"""Check the released or sample IdioTS file and write the dataset."""

import argparse
from pathlib import Path

from pieline.core.errors import run_command
from pieline.core.upstream import is_released, load_upstream
from pieline.studies.idiots.datasets import IdiotsDataset, Origin
from pieline.studies.idiots.raw import read_distractor_kinds, read_sentences


def main() -> None:
    """Parse the command line and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sentences", type=Path, required=True, help="the JSON array")
    parser.add_argument("--kinds", type=Path, nargs="?", help="CSV that marks the distractors")
    parser.add_argument("--upstream", type=Path, required=True, help="data/upstream.yaml")
    parser.add_argument("--name", required=True, help="upstream name of the JSON array")
    parser.add_argument("--sample", action="store_true", help="the file is this project's sample")
    parser.add_argument("--output", type=Path, required=True, help="folder of the dataset")
    arguments = parser.parse_args()

    origin: Origin = "sample" if arguments.sample else "unverified"
    if is_released({arguments.name: arguments.sentences}, load_upstream(arguments.upstream)):
        origin = "released"
    kinds = read_distractor_kinds(arguments.kinds) if arguments.kinds else None
    IdiotsDataset(origin, read_sentences(arguments.sentences, kinds)).save(arguments.output)


if __name__ == "__main__":
    run_command(main)
