"""Write ID10M-JAM's neutral-context ablation as LaTeX and CSV."""

from pathlib import Path

from pieline.errors import run_command
from pieline.metrics.neutral import NeutralMetrics
from pieline.records import load_record
from pieline.report.arguments import TABLE, report_parser
from pieline.report.jam_appendix import write_neutral_table


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
