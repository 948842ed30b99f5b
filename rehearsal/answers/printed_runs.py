"""The runs behind the printed cells of ID10M-JAM, as whole numbers of sentences.

`jam_runs.csv` has a line per seed, which `benchmarks/jam/printed_runs.py` found: no means over
seeds are printed that these do not give.
"""

import csv
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from itertools import product
from pathlib import Path
from typing import NamedTuple

from pieline.core.files import read_text
from pieline.reporting.printed import read_published
from pieline.studies.jam.settings import JamSettings

RUNS = Path(__file__).with_name("jam_runs.csv")
VARIANTS = 3
"""Hard variants of each original (section 3.4)."""
KINDS = ("literal", "idiomatic")
FINE_TUNED = "fine_tuned"
Key = tuple[str, str, str]
"""Setting, model as the paper calls it, language."""


class SeedRun(NamedTuple):
    """One seed of a run.

    Attributes:
        right: right originals, literal and idiomatic.
        flipped: wrong variants of these.
        confusion: originals with all, none, some of their variants wrong (Table 6); null of
            encoders.
    """

    right: tuple[int, int]
    flipped: tuple[int, int]
    confusion: tuple[int, int, int] | None


@cache
def printed_runs() -> dict[Key, list[SeedRun]]:
    """The seeds of each printed run, in the order of Table 3."""
    found: defaultdict[Key, list[SeedRun]] = defaultdict(list)
    for row in csv.DictReader(read_text(RUNS).splitlines()):
        right, flipped = (
            (int(row[f"{what}_literal"]), int(row[f"{what}_idiomatic"]))
            for what in ("right", "flipped")
        )
        confusion = None
        if row["mixed"]:
            confusion = int(row["all_confused"]), int(row["none_confused"]), int(row["mixed"])
        key = row["setting"], row["model"], row["language"]
        found[key].append(SeedRun(right, flipped, confusion))
    return dict(found)


def text_numbers(published: Path) -> dict[str, float]:
    """The numbers of the papers' running texts by their ids (`published/text_numbers.csv`)."""
    rows = read_published(published / "text_numbers.csv", ["id"])
    return {name: row["value"] for (name,), row in rows.items()}


def printed_originals(published: Path) -> dict[str, tuple[int, int]]:
    """Literal and idiomatic originals of the paper, by language (section 5).

    Args:
        published: the folder of printed numbers.
    """
    numbers = text_numbers(published)
    found = {}
    for language in JamSettings().languages:
        every, literal = (
            round(numbers[f"jam.{kind}_{language}"]) for kind in ("originals", "literal_originals")
        )
        found[language] = literal, every - literal
    return found


class Share(NamedTuple):
    """Originals of one kind by their wrong variants: `right` ones and wrong ones."""

    right: tuple[int, int, int, int]
    wrong: tuple[int, int, int, int]


def shares_of(run: SeedRun, originals: tuple[int, int]) -> tuple[Share, Share] | None:
    """How many right and wrong originals of each kind have 0, 1, 2 and 3 wrong variants.

    Null where the flips do not go with AC, NC and MX.
    """
    free = [most - right for most, right in zip(originals, run.right, strict=True)]
    if run.confusion is None:
        # Whoever misreads an original misreads its variants.
        right = [next(_spread(*counts)) for counts in zip(run.right, run.flipped, strict=True)]
        return Share(right[0], (0, 0, 0, free[0])), Share(right[1], (0, 0, 0, free[1]))
    whole, _, mixed = run.confusion
    choices = [
        list(_spread(right, flipped)) for right, flipped in zip(run.right, run.flipped, strict=True)
    ]
    for literal, idiomatic in product(*choices):
        left_whole = whole - literal[3] - idiomatic[3]
        left_mixed = mixed - sum(literal[1:3]) - sum(idiomatic[1:3])
        if min(left_whole, left_mixed) >= 0 and left_whole + left_mixed <= sum(free):
            wrong = []
            for room in free:
                w = min(room, left_whole)
                m = min(room - w, left_mixed)
                left_whole, left_mixed = left_whole - w, left_mixed - m
                wrong.append((room - w - m, m, 0, w))
            return Share(literal, wrong[0]), Share(idiomatic, wrong[1])
    return None


def _spread(right: int, flipped: int) -> Iterator[tuple[int, int, int, int]]:
    """Ways to spread flips over right originals."""
    for three in range(flipped // 3 + 1):
        for two in range((flipped - 3 * three) // 2 + 1):
            one = flipped - 3 * three - 2 * two
            if three + two + one <= right:
                yield right - three - two - one, one, two, three
