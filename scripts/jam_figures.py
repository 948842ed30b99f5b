"""Draw ID10M-JAM's Figures 2, 3 and 6, and write what the text says of them."""

from pathlib import Path

from pieline.core.errors import run_command
from pieline.core.records import load_records
from pieline.reporting.arguments import TABLE, report_parser
from pieline.studies.idiolink.figures.modes import save_figure, use_style
from pieline.studies.jam.figures.results import (
    draw_accuracy_vs_drift,
    draw_confused_models,
    draw_confusion,
    write_figure_numbers,
)
from pieline.studies.jam.metrics.runs import JamMetrics


def main() -> None:
    """Parse the command line and draw."""
    parser = report_parser(__doc__, "metrics", "models", "text-numbers", "style", *TABLE)
    parser.add_argument("--accuracy", type=Path, nargs=2, required=True, help="PDF and PNG")
    parser.add_argument("--confused", type=Path, nargs=2, required=True, help="PDF and PNG")
    parser.add_argument("--mixed", type=Path, nargs=2, required=True, help="PDF and PNG")
    it = parser.parse_args()
    use_style(it.style)
    metrics, models = load_records(it.metrics, JamMetrics), it.models
    for (pdf, png), figure in (
        (it.accuracy, draw_accuracy_vs_drift(metrics, models)),
        (it.confused, draw_confused_models(metrics)),
        (it.mixed, draw_confusion(metrics, models)),
    ):
        save_figure(figure, pdf=pdf, png=png)
    write_figure_numbers(
        metrics, text_numbers=it.text_numbers, template=it.template, tex=it.tex, csv=it.csv
    )


if __name__ == "__main__":
    run_command(main)
