"""Write one of ID10M-JAM's result tables (Tables 3, 5, 6) as LaTeX and CSV."""

from pieline.errors import run_command
from pieline.metrics.jam import JamMetrics
from pieline.records import load_records
from pieline.report.arguments import TABLE, report_parser
from pieline.report.jam_results import TABLES, write_results_table


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
