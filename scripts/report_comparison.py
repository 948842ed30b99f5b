"""Print every comparable cell beside the printed one; fail if one is not reproduced."""

import argparse
from pathlib import Path

from rich.console import Console
from rich.table import Table

from pieline.errors import run_command
from pieline.published import read_comparisons


def main() -> None:
    """Parse the command line and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", type=Path, nargs="+", help="CSV files of paper_tables/")
    arguments = parser.parse_args()

    shown = Table("table", "cell", "ours", "printed", "difference", "tolerance", "reproduced")
    verdicts = []
    for path in arguments.tables:
        for row in read_comparisons(path):
            if row["reproduced"]:
                names = list(row)[: list(row).index("ours")]
                cell = " ".join(row[name] for name in names)
                columns = ("ours", "printed", "difference", "tolerance", "reproduced")
                shown.add_row(path.stem, cell, *(row[column] for column in columns))
                verdicts.append(row["reproduced"] == "yes")
    console = Console()
    console.print(shown)
    console.print(f"{sum(verdicts)} of {len(verdicts)} comparable cells reproduced")
    raise SystemExit(not all(verdicts))


if __name__ == "__main__":
    run_command(main)
