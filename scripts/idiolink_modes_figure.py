"""Draw both metrics by model and query mode as PDF and PNG."""

from pieline.core.errors import run_command
from pieline.core.records import load_records
from pieline.reporting.arguments import FIGURE, report_parser
from pieline.studies.idiolink.figures.modes import draw_query_modes, save_figure, use_style
from pieline.studies.idiolink.metrics.scores import IdiolinkMetrics


def main() -> None:
    """Parse the command line and write."""
    arguments = report_parser(__doc__, "metrics", "models", *FIGURE).parse_args()
    use_style(arguments.style)
    figure = draw_query_modes(load_records(arguments.metrics, IdiolinkMetrics), arguments.models)
    save_figure(figure, pdf=arguments.pdf, png=arguments.png)


if __name__ == "__main__":
    run_command(main)
