"""Write the randomisation tests between query modes as LaTeX and CSV."""

from pathlib import Path

from pieline.errors import run_command
from pieline.metrics.significance import ModeSignificance
from pieline.records import load_records
from pieline.report.arguments import TABLE, report_parser
from pieline.report.significance import write_significance_table


def main() -> None:
    """Parse the command line and write."""
    parser = report_parser(__doc__, "models", *TABLE)
    parser.add_argument("--tests", type=Path, nargs="+", required=True)
    arguments = parser.parse_args()
    write_significance_table(
        load_records(arguments.tests, ModeSignificance),
        arguments.models,
        template=arguments.template,
        tex=arguments.tex,
        csv=arguments.csv,
    )


if __name__ == "__main__":
    run_command(main)
