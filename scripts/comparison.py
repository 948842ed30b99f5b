"""Write every cell beside the printed one, and say how many comparable cells are reproduced."""

from pathlib import Path

from pieline.core.errors import run_command
from pieline.reporting.arguments import TABLE, report_parser
from pieline.results.comparison import read_cells, summary, write_comparison


def main() -> None:
    """Parse the command line, write, and print the summary."""
    parser = report_parser(__doc__, *TABLE)
    parser.add_argument("--tables", type=Path, nargs="*", default=[], help="our CSVs")
    arguments = parser.parse_args()
    cells = read_cells(arguments.tables)
    write_comparison(cells, csv=arguments.csv, tex=arguments.tex, template=arguments.template)
    print(summary(cells))


if __name__ == "__main__":
    run_command(main)
