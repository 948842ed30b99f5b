"""Draw one figure of any study as PDF and PNG."""

import argparse
from pathlib import Path

from pieline.core.errors import run_command
from pieline.core.records import parse_record
from pieline.reporting.figures import save_figure, use_style
from pieline.reporting.given import Given, made_by


def main() -> None:
    """Parse the command line and draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--maker", required=True, help="module:function that draws it")
    parser.add_argument("--given", required=True, help="what it is made from, as JSON")
    parser.add_argument("--style", type=Path, required=True, help="matplotlib style")
    parser.add_argument("--pdf", type=Path, required=True)
    parser.add_argument("--png", type=Path, required=True)
    it = parser.parse_args()

    use_style(it.style)
    figure = made_by(it.maker)(parse_record(it.given, Given, option="--given"))
    save_figure(figure, pdf=it.pdf, png=it.png)


if __name__ == "__main__":
    run_command(main)
