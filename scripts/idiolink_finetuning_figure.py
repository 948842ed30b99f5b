"""Draw zero-shot beside fine-tuned results (IdioLink's Figure 3) as PDF and PNG."""

from pathlib import Path

from pieline.core.errors import run_command
from pieline.core.records import load_records
from pieline.reporting.arguments import FIGURE, report_parser
from pieline.studies.idiolink.figures.finetuning import draw_finetuning
from pieline.studies.idiolink.figures.modes import save_figure, use_style
from pieline.studies.idiolink.metrics.scores import IdiolinkMetrics


def main() -> None:
    """Parse the command line and write."""
    parser = report_parser(__doc__, "models", *FIGURE)
    parser.add_argument("--zero-shot", type=Path, nargs="*", default=[], help="metric files")
    parser.add_argument("--fine-tuned", type=Path, nargs="+", required=True, help="metric files")
    arguments = parser.parse_args()
    use_style(arguments.style)
    figure = draw_finetuning(
        load_records(arguments.zero_shot, IdiolinkMetrics),
        load_records(arguments.fine_tuned, IdiolinkMetrics),
        arguments.models,
    )
    save_figure(figure, pdf=arguments.pdf, png=arguments.png)


if __name__ == "__main__":
    run_command(main)
