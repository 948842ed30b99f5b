"""Write the scores of each PIE as CSV and draw them as PDF and PNG."""

import argparse
from pathlib import Path

from pieline.errors import run_command
from pieline.report.figures import save_figure, use_style
from pieline.report.idiolink import load_metrics
from pieline.report.pies import draw_pies, write_pies


def main() -> None:
    """Parse the command line and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--metrics", type=Path, nargs="+", required=True)
    parser.add_argument("--style", type=Path, required=True)
    parser.add_argument("--csv", type=Path, required=True)
    parser.add_argument("--pdf", type=Path, required=True)
    parser.add_argument("--png", type=Path, required=True)
    arguments = parser.parse_args()
    metrics = load_metrics(arguments.metrics)
    write_pies(metrics, arguments.csv)
    use_style(arguments.style)
    save_figure(draw_pies(metrics), pdf=arguments.pdf, png=arguments.png)


if __name__ == "__main__":
    run_command(main)
