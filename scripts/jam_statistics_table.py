"""Write ID10M-JAM's Table 2 as LaTeX and CSV."""

import argparse
from pathlib import Path

from pieline.errors import run_command
from pieline.report.jam_dataset import load_statistics, write_statistics_table


def main() -> None:
    """Parse the command line and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--statistics", type=Path, nargs="+", required=True)
    parser.add_argument("--published", type=Path, required=True)
    parser.add_argument("--text-numbers", type=Path, required=True)
    parser.add_argument("--template", type=Path, required=True)
    parser.add_argument("--tex", type=Path, required=True)
    parser.add_argument("--csv", type=Path, required=True)
    it = parser.parse_args()
    write_statistics_table(
        load_statistics(it.statistics),
        published=it.published,
        text_numbers=it.text_numbers,
        template=it.template,
        tex=it.tex,
        csv=it.csv,
    )


if __name__ == "__main__":
    run_command(main)
