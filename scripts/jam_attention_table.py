"""Write ID10M-JAM's attention analysis as LaTeX, CSV and Figure 7."""

import argparse
from pathlib import Path

from pieline.attention_records import AttentionMetrics
from pieline.errors import run_command
from pieline.report.figures import save_figure, use_style
from pieline.report.jam_appendix import draw_attention, load_one, write_attention_table
from pieline.report.models import load_descriptions


def main() -> None:
    """Parse the command line and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--metrics", type=Path, required=True)
    parser.add_argument("--models", required=True, help="descriptions, as JSON")
    parser.add_argument("--template", type=Path, required=True)
    parser.add_argument("--style", type=Path, required=True)
    parser.add_argument("--tex", type=Path, required=True)
    parser.add_argument("--csv", type=Path, required=True)
    parser.add_argument("--pdf", type=Path, required=True)
    parser.add_argument("--png", type=Path, required=True)
    it = parser.parse_args()
    metrics, models = load_one(it.metrics, AttentionMetrics), load_descriptions(it.models)
    write_attention_table(metrics, models, template=it.template, tex=it.tex, csv=it.csv)
    use_style(it.style)
    save_figure(draw_attention(metrics), pdf=it.pdf, png=it.png)


if __name__ == "__main__":
    run_command(main)
