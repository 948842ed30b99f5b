"""Write ID10M-JAM's human baseline as LaTeX and CSV."""

from pathlib import Path

from pieline.core.errors import run_command
from pieline.core.records import load_record
from pieline.reporting.arguments import TABLE, report_parser
from pieline.studies.jam.metrics.humans import HumanMetrics
from pieline.studies.jam.tables.appendix import write_humans_table


def main() -> None:
    """Parse the command line and write."""
    parser = report_parser(__doc__, "text-numbers", *TABLE)
    parser.add_argument("--metrics", type=Path, required=True)
    it = parser.parse_args()
    write_humans_table(
        load_record(it.metrics, HumanMetrics),
        text_numbers=it.text_numbers,
        template=it.template,
        tex=it.tex,
        csv=it.csv,
    )


if __name__ == "__main__":
    run_command(main)
