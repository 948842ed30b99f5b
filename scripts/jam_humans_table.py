"""Write ID10M-JAM's human baseline as LaTeX and CSV."""

import argparse
from pathlib import Path

from pieline.errors import run_command
from pieline.metrics.humans import HumanMetrics
from pieline.report.jam_appendix import load_one, write_humans_table


def main() -> None:
    """Parse the command line and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--metrics", type=Path, required=True)
    parser.add_argument("--text-numbers", type=Path, required=True)
    parser.add_argument("--template", type=Path, required=True)
    parser.add_argument("--tex", type=Path, required=True)
    parser.add_argument("--csv", type=Path, required=True)
    it = parser.parse_args()
    write_humans_table(
        load_one(it.metrics, HumanMetrics),
        text_numbers=it.text_numbers,
        template=it.template,
        tex=it.tex,
        csv=it.csv,
    )


if __name__ == "__main__":
    run_command(main)
