"""Draw how many texts of each domain and usage IdioLink data has."""

import argparse
from pathlib import Path

from pieline.construction.composition import DatasetChecks
from pieline.errors import run_command
from pieline.report.figures import save_figure, use_style
from pieline.report.idiolink_dataset import draw_domains, load_report


def main() -> None:
    """Parse the command line and draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checks", type=Path, required=True, help="JSON file of the checks")
    parser.add_argument("--style", type=Path, required=True, help="matplotlib style")
    parser.add_argument("--pdf", type=Path, required=True)
    parser.add_argument("--png", type=Path, required=True)
    it = parser.parse_args()

    use_style(it.style)
    save_figure(draw_domains(load_report(it.checks, DatasetChecks)), pdf=it.pdf, png=it.png)


if __name__ == "__main__":
    run_command(main)
