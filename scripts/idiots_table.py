"""Write one of IdioTS's tables as LaTeX and CSV."""

import argparse
from pathlib import Path

from pieline.errors import run_command
from pieline.report.detection import TABLES, load_detection_metrics, write_detection_table
from pieline.report.models import load_descriptions


def main() -> None:
    """Parse the command line and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", choices=TABLES, required=True)
    parser.add_argument("--metrics", type=Path, nargs="+", required=True)
    parser.add_argument("--models", required=True, help="descriptions of those run, as JSON")
    parser.add_argument("--all-models", required=True, help="descriptions of all, as JSON")
    parser.add_argument("--published", type=Path, required=True)
    parser.add_argument("--template", type=Path, required=True)
    parser.add_argument("--tex", type=Path, required=True)
    parser.add_argument("--csv", type=Path, required=True)
    arguments = parser.parse_args()
    write_detection_table(
        arguments.table,
        load_detection_metrics(arguments.metrics),
        load_descriptions(arguments.models),
        load_descriptions(arguments.all_models),
        published=arguments.published,
        template=arguments.template,
        tex=arguments.tex,
        csv=arguments.csv,
    )


if __name__ == "__main__":
    run_command(main)
