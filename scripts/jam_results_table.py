"""Write one of ID10M-JAM's result tables (Tables 3, 5, 6) as LaTeX and CSV."""

import argparse
from pathlib import Path

from pieline.errors import run_command
from pieline.metrics.jam import load_jam_metrics
from pieline.report.jam_results import TABLES, write_results_table
from pieline.report.models import load_descriptions


def main() -> None:
    """Parse the command line and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", choices=list(TABLES), required=True)
    parser.add_argument("--metrics", type=Path, nargs="+", required=True)
    parser.add_argument("--models", required=True, help="descriptions, as JSON")
    parser.add_argument("--published", type=Path, required=True)
    parser.add_argument("--template", type=Path, required=True)
    parser.add_argument("--tex", type=Path, required=True)
    parser.add_argument("--csv", type=Path, required=True)
    it = parser.parse_args()
    write_results_table(
        it.table,
        load_jam_metrics(it.metrics),
        load_descriptions(it.models),
        published=it.published,
        template=it.template,
        tex=it.tex,
        csv=it.csv,
    )


if __name__ == "__main__":
    run_command(main)
