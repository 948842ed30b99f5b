"""Write IdioLink's BM25 table (appendix E) as LaTeX and CSV."""

from pieline.core.errors import run_command
from pieline.core.records import load_records
from pieline.reporting.arguments import TABLE, report_parser
from pieline.studies.idiolink.metrics.scores import IdiolinkMetrics
from pieline.studies.idiolink.tables.zero_shot import write_bm25_table


def main() -> None:
    """Parse the command line and write."""
    arguments = report_parser(__doc__, "metrics", "published", *TABLE).parse_args()
    write_bm25_table(
        load_records(arguments.metrics, IdiolinkMetrics),
        published=arguments.published,
        template=arguments.template,
        tex=arguments.tex,
        csv=arguments.csv,
    )


if __name__ == "__main__":
    run_command(main)
