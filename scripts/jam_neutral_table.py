"""Write ID10M-JAM's neutral-context ablation as LaTeX and CSV."""

from pathlib import Path

from pieline.core.errors import run_command
from pieline.core.records import load_record
from pieline.reporting.arguments import TABLE, report_parser
from pieline.studies.jam.metrics.neutral import NeutralMetrics
from pieline.studies.jam.tables.appendix import write_neutral_table


def main() -> None:
    """Parse the command line and write."""
    parser = report_parser(__doc__, "models", "text-numbers", *TABLE)
    parser.add_argument("--metrics", type=Path, required=True)
    it = parser.parse_args()
    write_neutral_table(
        load_record(it.metrics, NeutralMetrics),
        it.models,
        text_numbers=it.text_numbers,
        template=it.template,
        tex=it.tex,
        csv=it.csv,
    )


if __name__ == "__main__":
    run_command(main)
