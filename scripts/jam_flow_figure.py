"""Draw what filtering, generation and validation leave of ID10M."""

import argparse
from pathlib import Path

from pieline.errors import run_command
from pieline.report.figures import save_figure, use_style
from pieline.report.jam_dataset import draw_flow, load_statistics


def main() -> None:
    """Parse the command line and draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--statistics", type=Path, nargs="+", required=True)
    parser.add_argument("--style", type=Path, required=True)
    parser.add_argument("--pdf", type=Path, required=True)
    parser.add_argument("--png", type=Path, required=True)
    it = parser.parse_args()
    use_style(it.style)
    save_figure(draw_flow(load_statistics(it.statistics)), pdf=it.pdf, png=it.png)


if __name__ == "__main__":
    run_command(main)
