"""Draw what filtering, generation and validation leave of ID10M."""

from pathlib import Path

from pieline.core.errors import run_command
from pieline.core.records import load_records
from pieline.reporting.arguments import FIGURE, report_parser
from pieline.studies.idiolink.figures.modes import save_figure, use_style
from pieline.studies.jam.metrics.statistics import JamStatistics
from pieline.studies.jam.tables.dataset import draw_flow


def main() -> None:
    """Parse the command line and draw."""
    parser = report_parser(__doc__, *FIGURE)
    parser.add_argument("--statistics", type=Path, nargs="+", required=True)
    it = parser.parse_args()
    use_style(it.style)
    save_figure(draw_flow(load_records(it.statistics, JamStatistics)), pdf=it.pdf, png=it.png)


if __name__ == "__main__":
    run_command(main)
