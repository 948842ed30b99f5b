"""Write one of ID10M-JAM's result tables (Tables 3, 5, 6) as LaTeX and CSV."""

from pieline.core.errors import run_command
from pieline.core.records import load_records
from pieline.reporting.arguments import TABLE, report_parser
from pieline.studies.jam.metrics.runs import JamMetrics
from pieline.studies.jam.tables.results import TABLES, write_results_table


def main() -> None:
    """Parse the command line and write."""
    parser = report_parser(__doc__, "metrics", "models", "published", *TABLE)
    parser.add_argument("--table", choices=list(TABLES), required=True)
    it = parser.parse_args()
    write_results_table(
        it.table,
        load_records(it.metrics, JamMetrics),
        it.models,
        published=it.published,
        template=it.template,
        tex=it.tex,
        csv=it.csv,
    )


if __name__ == "__main__":
    run_command(main)
