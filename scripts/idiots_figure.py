"""Draw recall against specificity as PDF and PNG."""

from pieline.core.errors import run_command
from pieline.core.records import load_records
from pieline.reporting.arguments import FIGURE, report_parser
from pieline.studies.idiolink.figures.modes import save_figure, use_style
from pieline.studies.idiots.figures import draw_recall_against_specificity
from pieline.studies.idiots.metrics import DetectionMetrics


def main() -> None:
    """Parse the command line and draw."""
    arguments = report_parser(__doc__, "metrics", "models", "published", *FIGURE).parse_args()
    use_style(arguments.style)
    figure = draw_recall_against_specificity(
        load_records(arguments.metrics, DetectionMetrics),
        arguments.models,
        published=arguments.published,
    )
    save_figure(figure, pdf=arguments.pdf, png=arguments.png)


if __name__ == "__main__":
    run_command(main)
