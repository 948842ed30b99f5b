"""Write every cell beside the printed one, and say how many comparable cells are reproduced."""

import argparse
from pathlib import Path

from pieline.errors import run_command
from pieline.report.comparison import read_cells, summary, write_comparison


def main() -> None:
    """Parse the command line, write, and print the summary."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=Path, nargs="*", default=[], help="our CSVs")
    parser.add_argument("--template", type=Path, required=True)
    parser.add_argument("--csv", type=Path, required=True)
    parser.add_argument("--tex", type=Path, required=True)
    arguments = parser.parse_args()
    cells = read_cells(arguments.tables)
    write_comparison(cells, csv=arguments.csv, tex=arguments.tex, template=arguments.template)
    print(summary(cells))


if __name__ == "__main__":
    run_command(main)
