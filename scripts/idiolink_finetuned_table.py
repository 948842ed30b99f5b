"""Write IdioLink's fine-tuning table (Table 5) as LaTeX and CSV."""

import argparse
from pathlib import Path

from pieline.errors import run_command
from pieline.report.finetuning import write_finetuned_table
from pieline.report.idiolink import load_metrics
from pieline.report.models import load_descriptions


def main() -> None:
    """Parse the command line and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--metrics", type=Path, nargs="+", required=True)
    parser.add_argument("--models", required=True, help="descriptions of all embedders, as JSON")
    parser.add_argument("--altered", nargs="*", default=[], help="settings unlike the paper's")
    parser.add_argument("--published", type=Path, required=True)
    parser.add_argument("--template", type=Path, required=True)
    parser.add_argument("--tex", type=Path, required=True)
    parser.add_argument("--csv", type=Path, required=True)
    arguments = parser.parse_args()
    write_finetuned_table(
        load_metrics(arguments.metrics),
        load_descriptions(arguments.models),
        altered=arguments.altered,
        published=arguments.published,
        template=arguments.template,
        tex=arguments.tex,
        csv=arguments.csv,
    )


if __name__ == "__main__":
    run_command(main)
