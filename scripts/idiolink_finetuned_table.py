"""Write IdioLink's fine-tuning table (Table 5) as LaTeX and CSV."""

from pieline.core.errors import run_command
from pieline.core.records import load_records
from pieline.reporting.arguments import TABLE, report_parser
from pieline.studies.idiolink.metrics.scores import IdiolinkMetrics
from pieline.studies.idiolink.tables.finetuning import write_finetuned_table


def main() -> None:
    """Parse the command line and write."""
    parser = report_parser(__doc__, "metrics", "models", "published", *TABLE)
    parser.add_argument("--altered", nargs="*", default=[], help="settings unlike the paper's")
    arguments = parser.parse_args()
    write_finetuned_table(
        load_records(arguments.metrics, IdiolinkMetrics),
        arguments.models,
        altered=arguments.altered,
        published=arguments.published,
        template=arguments.template,
        tex=arguments.tex,
        csv=arguments.csv,
    )


if __name__ == "__main__":
    run_command(main)
