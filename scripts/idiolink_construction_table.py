"""Write the numbers of IdioLink's construction as LaTeX and as CSV beside the printed ones."""

import argparse
from pathlib import Path

from pieline.construction.assembly import ConstructionMetrics
from pieline.construction.released_list import FilterReport
from pieline.errors import run_command
from pieline.report.idiolink_dataset import load_report, write_construction_table


def main() -> None:
    """Parse the command line and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--metrics", type=Path, required=True, help="of the construction, JSON")
    parser.add_argument("--filter-report", type=Path, required=True, help="JSON file")
    parser.add_argument("--published", type=Path, required=True, help="printed numbers, CSV")
    parser.add_argument("--template", type=Path, required=True)
    parser.add_argument("--tex", type=Path, required=True)
    parser.add_argument("--csv", type=Path, required=True)
    it = parser.parse_args()

    write_construction_table(
        load_report(it.metrics, ConstructionMetrics),
        load_report(it.filter_report, FilterReport),
        published=it.published,
        template=it.template,
        tex=it.tex,
        csv=it.csv,
    )


if __name__ == "__main__":
    run_command(main)
