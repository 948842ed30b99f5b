"""Make one table of any study as LaTeX, CSV and HTML."""

import argparse
from pathlib import Path

from pieline.core.errors import run_command
from pieline.core.records import parse_record
from pieline.reporting.given import Given, made_by
from pieline.reporting.tables import write_table


def main() -> None:
    """Parse the command line and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--name", required=True, help="of the table")
    parser.add_argument("--maker", required=True, help="module:function that makes its content")
    parser.add_argument("--given", required=True, help="what it is made from, as JSON")
    parser.add_argument("--templates", type=Path, required=True, help="folder of the templates")
    parser.add_argument("--tex", type=Path, required=True)
    parser.add_argument("--csv", type=Path, required=True)
    parser.add_argument("--html", type=Path, required=True)
    it = parser.parse_args()

    content = made_by(it.maker)(parse_record(it.given, Given, option="--given"))
    write_table(it.name, content, templates=it.templates, tex=it.tex, csv=it.csv, html=it.html)


if __name__ == "__main__":
    run_command(main)
