"""Draw both metrics by model and query mode as PDF and PNG."""

from pieline.errors import run_command
from pieline.metrics.idiolink import IdiolinkMetrics
from pieline.records import load_records
from pieline.report.arguments import FIGURE, report_parser
from pieline.report.figures import draw_query_modes, save_figure, use_style


def main() -> None:
    """Parse the command line and write."""
    arguments = report_parser(__doc__, "metrics", "models", *FIGURE).parse_args()
    use_style(arguments.style)
    figure = draw_query_modes(load_records(arguments.metrics, IdiolinkMetrics), arguments.models)
    save_figure(figure, pdf=arguments.pdf, png=arguments.png)


if __name__ == "__main__":
    run_command(main)
