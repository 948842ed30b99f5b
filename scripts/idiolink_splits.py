"""Divide the PIEs into train, validation and test, with the gold PIEs of the test split."""

import argparse
from pathlib import Path

from pieline.core.errors import run_command
from pieline.core.files import write_json
from pieline.core.records import load_jsonl, parse_record
from pieline.studies.idiolink.originals.pie_filter import PieVerdict
from pieline.studies.idiolink.originals.splits import (
    SplitSizes,
    draw_splits,
    read_released,
    released_splits,
)


def main() -> None:
    """Parse the command line and divide."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pies", type=Path, required=True, help="verdicts on the PIEs")
    parser.add_argument("--sizes", required=True, help="PIEs of each split, as JSON")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument(
        "--released", type=Path, nargs="*", help="indexes.json of train, val and test, to follow"
    )
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()

    kept = [verdict.pie for verdict in load_jsonl(arguments.pies, PieVerdict) if verdict.kept]
    if arguments.released:
        splits = released_splits(kept, read_released(arguments.released))
    else:
        sizes = parse_record(arguments.sizes, SplitSizes, option="--sizes")
        splits = draw_splits(kept, sizes, seed=arguments.seed)
    write_json(arguments.output, splits.model_dump())


if __name__ == "__main__":
    run_command(main)
