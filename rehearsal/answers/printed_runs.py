"""Runs that reproduce the printed cells of ID10M-JAM, as numbers of originals.

`jam_runs.csv` has one line per run and seed; `benchmarks/jam/printed_runs.py` writes it.
"""

import csv
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import NamedTuple

from pieline.core.files import read_text
from pieline.reporting.printed import read_published

RUNS = Path(__file__).with_name("jam_runs.csv")
VARIANTS = 3
"""Number of hard variants per original (section 3.4)."""
FINE_TUNED = "fine_tuned"
Key = tuple[str, str, str]
"""Setting, printed model name and language."""
Counts = tuple[int, ...]


class Share(NamedTuple):
    """Counts of originals by number of misjudged variants (0 to 3), if right and if wrong."""

    right: Counts
    wrong: Counts


class SeedRun(NamedTuple):
    """Counts of a run with one seed, on literal and on idiomatic originals."""

    literal: Share
    idiomatic: Share


@cache
def printed_runs() -> dict[Key, list[SeedRun]]:
    """Return the counts of each printed run, one entry per seed, in the order of Table 3."""
    runs: defaultdict[Key, list[SeedRun]] = defaultdict(list)
    rows = csv.reader(read_text(RUNS).splitlines()[1:])
    for setting, model, language, *shares in rows:
        counts = [tuple(map(int, each.split())) for each in shares]
        run = SeedRun(Share(*counts[:2]), Share(*counts[2:]))
        runs[setting, model, language].append(run)
    return dict(runs)


def text_numbers(published: Path) -> dict[str, float]:
    """Return the numbers of `published/text_numbers.csv` by id."""
    rows = read_published(published / "text_numbers.csv", ["id"])
    return {name: row["value"] for (name,), row in rows.items()}
