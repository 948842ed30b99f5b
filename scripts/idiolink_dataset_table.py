"""Write IdioLink's Table 1 as LaTeX and as CSV beside the printed counts."""

from pathlib import Path

from pieline.core.errors import run_command
from pieline.core.records import load_record
from pieline.reporting.arguments import TABLE, report_parser
from pieline.studies.idiolink.datasets.composition import DatasetChecks
from pieline.studies.idiolink.tables.dataset import write_dataset_table


def main() -> None:
    """Parse the command line and write the table."""
    parser = report_parser(__doc__, "published", *TABLE)
    parser.add_argument("--checks", type=Path, required=True, help="JSON file of the checks")
    it = parser.parse_args()

    checks = load_record(it.checks, DatasetChecks)
    write_dataset_table(
        checks, published=it.published, template=it.template, tex=it.tex, csv=it.csv
    )


if __name__ == "__main__":
    run_command(main)
