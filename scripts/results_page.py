"""Write the results page: one HTML file with ledger, tables, figures and the way down."""

from pathlib import Path

from pieline.core.errors import run_command
from pieline.reporting.arguments import report_parser
from pieline.results.artifacts import load_artifacts
from pieline.results.page.build import write_page
from pieline.results.page.evidence import Limits


def main() -> None:
    """Parse the command line and write."""
    parser = report_parser(__doc__, "template", "models")
    parser.add_argument("--artifacts", type=Path, required=True, help="templates/artifacts.yaml")
    parser.add_argument("--tables", type=Path, nargs="*", default=[], help="our CSVs")
    parser.add_argument("--figures", type=Path, nargs="*", default=[], help="our PNGs")
    parser.add_argument("--claims", type=Path, required=True, help="claims.json")
    parser.add_argument("--metrics", type=Path, nargs="*", default=[], help="metric files")
    parser.add_argument("--items", type=int, required=True, help="sentences shown a metric file")
    parser.add_argument("--depth", type=int, required=True, help="documents shown a query")
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    write_page(
        arguments.output,
        template=arguments.template,
        known=load_artifacts(arguments.artifacts),
        tables=arguments.tables,
        figures=arguments.figures,
        ledger=arguments.claims,
        metrics=arguments.metrics,
        models=arguments.models,
        limits=Limits(items=arguments.items, depth=arguments.depth),
    )


if __name__ == "__main__":
    run_command(main)
