"""Write IdioLink's Table 1 as LaTeX and as CSV beside the printed counts."""

import argparse
from pathlib import Path

from pieline.construction.composition import DatasetChecks
from pieline.errors import run_command
from pieline.report.idiolink_dataset import load_report, write_dataset_table


def main() -> None:
    """Parse the command line and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checks", type=Path, required=True, help="JSON file of the checks")
    parser.add_argument("--published", type=Path, required=True, help="printed numbers, CSV")
    parser.add_argument("--template", type=Path, required=True)
    parser.add_argument("--tex", type=Path, required=True)
    parser.add_argument("--csv", type=Path, required=True)
    it = parser.parse_args()

    checks = load_report(it.checks, DatasetChecks)
    write_dataset_table(
        checks, published=it.published, template=it.template, tex=it.tex, csv=it.csv
    )


if __name__ == "__main__":
    run_command(main)
