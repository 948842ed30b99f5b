"""Write one of IdioTS's tables as LaTeX and CSV."""

from pieline.core.errors import run_command
from pieline.core.records import load_records
from pieline.reporting.arguments import TABLE, report_parser
from pieline.studies.idiots.metrics import DetectionMetrics
from pieline.studies.idiots.tables import TABLES, write_detection_table


def main() -> None:
    """Parse the command line and write."""
    parser = report_parser(__doc__, "metrics", "models", "all-models", "published", *TABLE)
    parser.add_argument("--table", choices=TABLES, required=True)
    arguments = parser.parse_args()
    write_detection_table(
        arguments.table,
        load_records(arguments.metrics, DetectionMetrics),
        arguments.models,
        arguments.all_models,
        published=arguments.published,
        template=arguments.template,
        tex=arguments.tex,
        csv=arguments.csv,
    )


if __name__ == "__main__":
    run_command(main)
