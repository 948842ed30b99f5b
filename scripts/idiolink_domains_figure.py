"""Draw how many texts of each domain and usage IdioLink data has."""

from pathlib import Path

from pieline.core.errors import run_command
from pieline.core.records import load_record
from pieline.reporting.arguments import FIGURE, report_parser
from pieline.studies.idiolink.datasets.composition import DatasetChecks
from pieline.studies.idiolink.figures.modes import save_figure, use_style
from pieline.studies.idiolink.tables.dataset import draw_domains


def main() -> None:
    """Parse the command line and draw."""
    parser = report_parser(__doc__, *FIGURE)
    parser.add_argument("--checks", type=Path, required=True, help="JSON file of the checks")
    it = parser.parse_args()

    use_style(it.style)
    save_figure(draw_domains(load_record(it.checks, DatasetChecks)), pdf=it.pdf, png=it.png)


if __name__ == "__main__":
    run_command(main)
