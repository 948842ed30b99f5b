"""Write the results page: one HTML file with claims, tables, figures and the way down."""

from pathlib import Path

from pieline.core.errors import run_command
from pieline.core.records import parse_record
from pieline.reporting.arguments import report_parser
from pieline.reporting.evidence import Limits
from pieline.results.displays import Displays
from pieline.results.page.build import write_page


def main() -> None:
    """Parse the command line and write."""
    parser = report_parser(__doc__, "template", "models")
    parser.add_argument("--displays", required=True, help="JSON: tables and figures of the run")
    parser.add_argument("--claims", type=Path, required=True, help="claims.json")
    parser.add_argument("--items", type=int, required=True, help="sentences shown a metric file")
    parser.add_argument("--depth", type=int, required=True, help="documents shown a query")
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    write_page(
        arguments.output,
        template=arguments.template,
        displays=parse_record(arguments.displays, Displays, option="--displays"),
        ledger=arguments.claims,
        models=arguments.models,
        limits=Limits(items=arguments.items, depth=arguments.depth),
    )


if __name__ == "__main__":
    run_command(main)
