"""Write ID10M-JAM's attention analysis as LaTeX, CSV and Figure 7."""

from pathlib import Path

from pieline.core.errors import run_command
from pieline.core.records import load_record
from pieline.reporting.arguments import FIGURE, TABLE, report_parser
from pieline.studies.idiolink.figures.modes import save_figure, use_style
from pieline.studies.jam.metrics.attention_records import AttentionMetrics
from pieline.studies.jam.tables.appendix import draw_attention, write_attention_table


def main() -> None:
    """Parse the command line and write."""
    parser = report_parser(__doc__, "models", *TABLE, *FIGURE)
    parser.add_argument("--metrics", type=Path, required=True)
    it = parser.parse_args()
    metrics, models = load_record(it.metrics, AttentionMetrics), it.models
    write_attention_table(metrics, models, template=it.template, tex=it.tex, csv=it.csv)
    use_style(it.style)
    save_figure(draw_attention(metrics), pdf=it.pdf, png=it.png)


if __name__ == "__main__":
    run_command(main)
