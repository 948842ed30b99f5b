"""Write the scores of each PIE as CSV and draw them as PDF and PNG."""

from pieline.core.errors import run_command
from pieline.core.records import load_records
from pieline.reporting.arguments import FIGURE, report_parser
from pieline.studies.idiolink.figures.modes import save_figure, use_style
from pieline.studies.idiolink.metrics.scores import IdiolinkMetrics
from pieline.studies.idiolink.tables.pies import draw_pies, write_pies


def main() -> None:
    """Parse the command line and write."""
    arguments = report_parser(__doc__, "metrics", "csv", *FIGURE).parse_args()
    metrics = load_records(arguments.metrics, IdiolinkMetrics)
    write_pies(metrics, arguments.csv)
    use_style(arguments.style)
    save_figure(draw_pies(metrics), pdf=arguments.pdf, png=arguments.png)


if __name__ == "__main__":
    run_command(main)
