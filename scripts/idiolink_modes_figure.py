"""Draw both metrics by model and query mode as PDF and PNG."""

import argparse
from pathlib import Path

from pieline.errors import run_command
from pieline.report.figures import draw_query_modes, save_figure, use_style
from pieline.report.idiolink import load_metrics
from pieline.report.models import load_descriptions


def main() -> None:
    """Parse the command line and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--metrics", type=Path, nargs="+", required=True)
    parser.add_argument("--models", required=True, help="descriptions, as JSON")
    parser.add_argument("--style", type=Path, required=True)
    parser.add_argument("--pdf", type=Path, required=True)
    parser.add_argument("--png", type=Path, required=True)
    arguments = parser.parse_args()
    use_style(arguments.style)
    figure = draw_query_modes(load_metrics(arguments.metrics), load_descriptions(arguments.models))
    save_figure(figure, pdf=arguments.pdf, png=arguments.png)


if __name__ == "__main__":
    run_command(main)
