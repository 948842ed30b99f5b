"""Print the compared numbers of a run, the reasons why others were not compared, and totals.

The program fails if too few numbers are reproduced.
"""

import argparse
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from pieline.core.errors import run_command
from pieline.reporting.numbers import COMPARED, read_numbers
from pieline.results.numbers import counted, first_reason, in_words, ranked, summarize


def main() -> None:
    """Print the table and exit with status 1 if too few numbers are reproduced."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("numbers", type=Path, help="paper_tables/numbers.csv")
    parser.add_argument("--at-least", type=int, default=0, help="minimum of reproduced numbers")
    parser.add_argument("--brief", action="store_true", help="print only the last line")
    arguments = parser.parse_args()

    numbers = read_numbers(arguments.numbers)
    shown = Table("paper", "place", "number", "kind", "ours", "printed", "verdict")
    for each in counted(numbers):
        if each.verdict in COMPARED:
            ours, printed = each.shown, f"{each.printed:g}"
            what = in_words(each, {})
            shown.add_row(each.study, each.place, what, each.kind, ours, printed, each.verdict)
    console = Console(width=None if sys.stdout.isatty() else 120, highlight=False)
    if not arguments.brief:
        console.print(shown)
        for reason, times in ranked(filter(None, map(first_reason, counted(numbers)))).items():
            console.print(f"{times:5} not compared: {reason}")
    console.print(summarize(numbers), soft_wrap=True)
    reproduced = sum(each.verdict == "reproduced" for each in counted(numbers))
    raise SystemExit(reproduced < arguments.at_least)


if __name__ == "__main__":
    run_command(main)
