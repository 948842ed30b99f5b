"""Write ID10M-JAM's Table 2 as LaTeX and CSV."""

from pathlib import Path

from pieline.core.errors import run_command
from pieline.core.records import load_records
from pieline.reporting.arguments import TABLE, report_parser
from pieline.studies.jam.metrics.statistics import JamStatistics
from pieline.studies.jam.tables.dataset import write_statistics_table


def main() -> None:
    """Parse the command line and write."""
    parser = report_parser(__doc__, "published", "text-numbers", *TABLE)
    parser.add_argument("--statistics", type=Path, nargs="+", required=True)
    it = parser.parse_args()
    write_statistics_table(
        load_records(it.statistics, JamStatistics),
        published=it.published,
        text_numbers=it.text_numbers,
        template=it.template,
        tex=it.tex,
        csv=it.csv,
    )


if __name__ == "__main__":
    run_command(main)
