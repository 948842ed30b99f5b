"""Write the index-composition ablation as LaTeX and CSV."""

import argparse
from pathlib import Path

from pieline.errors import run_command
from pieline.report.idiolink import load_metrics, write_ablation_table
from pieline.report.models import load_descriptions


def main() -> None:
    """Parse the command line and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--metrics", type=Path, nargs="+", required=True)
    parser.add_argument("--models", required=True, help="descriptions, as JSON")
    parser.add_argument("--template", type=Path, required=True)
    parser.add_argument("--tex", type=Path, required=True)
    parser.add_argument("--csv", type=Path, required=True)
    arguments = parser.parse_args()
    write_ablation_table(
        load_metrics(arguments.metrics),
        load_descriptions(arguments.models),
        template=arguments.template,
        tex=arguments.tex,
        csv=arguments.csv,
    )


if __name__ == "__main__":
    run_command(main)
