"""Print every comparable cell of a run beside the printed one; fail if too few are reproduced."""

import argparse
import csv
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from pieline.core.errors import run_command
from pieline.core.files import read_text
from pieline.results.comparison import COMPARED, summary

COLUMNS = ("table", "cell", "ours", "printed", "difference", "tolerance", "verdict")


def main() -> None:
    """Parse the command line and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("comparison", type=Path, help="comparison.csv of paper_tables/")
    parser.add_argument("--at-least", type=int, default=0, help="reproduced cells to succeed")
    arguments = parser.parse_args()

    rows = list(csv.DictReader(read_text(arguments.comparison).splitlines()))
    compared = [row for row in rows if row["verdict"] in COMPARED]
    shown = Table(*COLUMNS)
    for row in compared:
        shown.add_row(*(row[column] for column in COLUMNS))
    reproduced = sum(row["verdict"] == "reproduced" for row in compared)
    console = Console(width=None if sys.stdout.isatty() else 120)
    console.print(shown)
    console.print(summary(row["verdict"] for row in compared))
    raise SystemExit(reproduced < arguments.at_least)


if __name__ == "__main__":
    run_command(main)
