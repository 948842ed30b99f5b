"""Write the scores of each PIE as CSV and draw them as PDF and PNG."""

from pieline.errors import run_command
from pieline.metrics.idiolink import IdiolinkMetrics
from pieline.records import load_records
from pieline.report.arguments import FIGURE, report_parser
from pieline.report.figures import save_figure, use_style
from pieline.report.pies import draw_pies, write_pies


def main() -> None:
    """Parse the command line and write."""
    arguments = report_parser(__doc__, "metrics", "csv", *FIGURE).parse_args()
    metrics = load_records(arguments.metrics, IdiolinkMetrics)
    write_pies(metrics, arguments.csv)
    use_style(arguments.style)
    save_figure(draw_pies(metrics), pdf=arguments.pdf, png=arguments.png)


if __name__ == "__main__":
    run_command(main)
