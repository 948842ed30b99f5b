"""Write the randomisation tests between query modes as LaTeX and CSV."""

from pathlib import Path

from pieline.core.errors import run_command
from pieline.core.records import load_records
from pieline.reporting.arguments import TABLE, report_parser
from pieline.studies.idiolink.metrics.significance import ModeSignificance
from pieline.studies.idiolink.tables.significance import write_significance_table


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
