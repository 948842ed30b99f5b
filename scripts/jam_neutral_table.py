"""Write ID10M-JAM's neutral-context ablation as LaTeX and CSV."""

import argparse
from pathlib import Path

from pieline.errors import run_command
from pieline.metrics.neutral import NeutralMetrics
from pieline.report.jam_appendix import load_one, write_neutral_table
from pieline.report.models import load_descriptions


def main() -> None:
    """Parse the command line and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--metrics", type=Path, required=True)
    parser.add_argument("--models", required=True, help="descriptions, as JSON")
    parser.add_argument("--text-numbers", type=Path, required=True)
    parser.add_argument("--template", type=Path, required=True)
    parser.add_argument("--tex", type=Path, required=True)
    parser.add_argument("--csv", type=Path, required=True)
    it = parser.parse_args()
    write_neutral_table(
        load_one(it.metrics, NeutralMetrics),
        load_descriptions(it.models),
        text_numbers=it.text_numbers,
        template=it.template,
        tex=it.tex,
        csv=it.csv,
    )


if __name__ == "__main__":
    run_command(main)
