"""Count and check IdioLink data, generated or released; list what is found and never fail on it."""

import argparse
from pathlib import Path

from pieline.core.conditions import Conditions
from pieline.core.errors import run_command
from pieline.core.files import digests, write_json
from pieline.core.records import parse_record
from pieline.core.upstream import is_released, load_upstream
from pieline.studies.idiolink.datasets.composition import check_dataset
from pieline.studies.idiolink.datasets.loose import read_loosely
from pieline.studies.idiolink.originals.splits import SPLITS


def main() -> None:
    """Parse the command line and check."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with a folder per split")
    parser.add_argument("--origin", required=True, help="name of the data")
    parser.add_argument("--sample", action="store_true", help="the data are the sample's")
    parser.add_argument("--upstream", type=Path, required=True, help="data/upstream.yaml")
    parser.add_argument("--conditions", required=True, help="how the data were made, as JSON")
    parser.add_argument("--output", type=Path, required=True, help="JSON file")
    it = parser.parse_args()

    texts, files = read_loosely([(split, it.data / split) for split in SPLITS])
    names = {f"idiolink/{path.relative_to(it.data)}": path for path in files}
    report = check_dataset(
        texts,
        origin=it.origin,
        sample=it.sample,
        released=is_released(names, load_upstream(it.upstream)),
        computed_from=digests(files),
        conditions=parse_record(it.conditions, Conditions, option="--conditions"),
    )
    write_json(it.output, report.model_dump())


if __name__ == "__main__":
    run_command(main)
