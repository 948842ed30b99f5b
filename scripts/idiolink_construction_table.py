"""Write the numbers of IdioLink's construction as LaTeX and as CSV beside the printed ones."""

from pathlib import Path

from pieline.core.errors import run_command
from pieline.core.records import load_record
from pieline.reporting.arguments import TABLE, report_parser
from pieline.studies.idiolink.datasets.assembly import ConstructionMetrics
from pieline.studies.idiolink.originals.released_list import FilterReport
from pieline.studies.idiolink.tables.dataset import write_construction_table


def main() -> None:
    """Parse the command line and write the table."""
    parser = report_parser(__doc__, "published", *TABLE)
    parser.add_argument("--metrics", type=Path, required=True, help="of the construction, JSON")
    parser.add_argument("--filter-report", type=Path, required=True, help="JSON file")
    it = parser.parse_args()

    write_construction_table(
        load_record(it.metrics, ConstructionMetrics),
        load_record(it.filter_report, FilterReport),
        published=it.published,
        template=it.template,
        tex=it.tex,
        csv=it.csv,
    )


if __name__ == "__main__":
    run_command(main)
