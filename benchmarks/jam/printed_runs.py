"""Reconstruct the runs behind the printed cells of ID10M-JAM as integer counts of sentences.

Tables 3, 5 and 6 print means over seeds. For each seed, the search finds the number of correct
originals and of their flipped variants, literal and idiomatic, and how many originals have all,
none or some of their variants wrong. For encoders, Table 6 prints flipped and kept variants
instead, which do not constrain the originals further. The runs are printed as CSV:

    PYTHONPATH=src:. python benchmarks/jam/printed_runs.py
"""

import csv
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pieline.reporting.printed import read_published
from pieline.studies.jam.settings import JamFineTuning, JamSettings

ROOT = Path(__file__).parents[2]
VARIANTS = 3
"""Number of hard variants per original (section 3.4)."""
FINE_TUNED = "fine_tuned"
Key = tuple[str, str, str]
"""Setting, printed model name and language."""
Counts = tuple[int, ...]
Cells = Mapping[str, float]
KINDS = ("literal", "idiomatic")
Way = list[tuple[tuple[int, int], tuple[int, int]]]
"""For each seed, the correct originals and the flipped variants, each as (literal, idiomatic)."""
_SLACK = 0.02
"""Tolerance for the last cell of an inconsistent row (mBERT, English: the drift of its idiomatic
variants has a standard deviation of 4.98, and Table 5 prints 5.00).
"""


class Share(NamedTuple):
    """Counts of originals by number of misjudged variants (0 to 3), if right and if wrong."""

    right: Counts
    wrong: Counts


class SeedRun(NamedTuple):
    """Counts of a run with one seed.

    Attributes:
        right: Numbers of correct originals, literal and idiomatic.
        flipped: Numbers of wrong variants of these originals, literal and idiomatic.
        confusion: Number of originals with all, none and some of their variants wrong (Table 6);
            None for encoders.
    """

    right: tuple[int, int]
    flipped: tuple[int, int]
    confusion: tuple[int, int, int] | None


class Solution(NamedTuple):
    """Counts that reproduce the cells of a row.

    Attributes:
        seeds: Counts of each seed.
        rounded: Whether the drifts match only if the paper averaged rounded values (to one
            decimal; in Table 3 to two for language models).
    """

    seeds: tuple[SeedRun, ...]
    rounded: bool


def printed_originals(published: Path) -> dict[str, tuple[int, int]]:
    """Return the paper's numbers of literal and idiomatic originals, by language (section 5).

    Args:
        published: Folder of the printed numbers.
    """
    rows = read_published(published / "text_numbers.csv", ["id"])
    numbers = {name: row["value"] for (name,), row in rows.items()}
    originals = {}
    for language in JamSettings().languages:
        every, literal = (
            round(numbers[f"jam.{kind}_{language}"]) for kind in ("originals", "literal_originals")
        )
        originals[language] = literal, every - literal
    return originals


def printed_rows(published: Path) -> dict[Key, dict[str, float]]:
    """Return the cells of Tables 3, 5 and 6 by setting, model and language, in Table 3's order.

    If the successes of the two usages do not sum to the total (mBERT, English), the idiomatic
    successes are computed from the total.
    """
    rows: dict[Key, dict[str, float]] = {}
    for number in (3, 5, 6):
        path = published / f"jam_table{number}.csv"
        for (setting, model, language), cells in read_published(
            path, ["setting", "model", "language"]
        ).items():
            rows.setdefault((setting, model, language), {}).update(cells)
    for cells in rows.values():
        left = cells["success"] - cells["success_literal"]
        if abs(left - cells["success_idiomatic"]) > 0.02:
            cells["success_idiomatic"] = left
    return rows


def solve(key: Key, cells: Cells, originals: tuple[int, int]) -> Solution:
    """Return the first counts that reproduce a row.

    Args:
        key: Setting, model and language of the row.
        cells: Printed numbers of the row (`printed_rows`).
        originals: Numbers of literal and idiomatic originals of the language.

    Raises:
        ValueError: No counts reproduce the row.
    """
    tagged = key[0] == FINE_TUNED
    several = len((JamFineTuning() if tagged else JamSettings()).seeds)
    rights = _right(cells, originals, several if "success_std" in cells else 1)
    ways = _ways_of_encoder if tagged else _ways
    for rounded, slack in ((False, 0.0), (True, 0.0), (True, _SLACK)):
        for counts in ways(cells, rights, rounded=rounded, slack=slack):
            confusion = [None] * len(counts) if tagged else _confusion(cells, counts, originals)
            if confusion:
                runs = zip(counts, confusion, strict=True)
                return Solution(tuple(SeedRun(*run, row) for run, row in runs), rounded)
    raise ValueError(f"no runs give the cells of {key}")


def _meets(
    values: NDArray[np.float64], cells: Cells, name: str, decimals: int = 2, slack: float = 0.0
) -> NDArray[np.bool_]:
    """Return which rows of values (one column per seed) have the printed mean and deviation."""
    half = 0.5 * 10**-decimals + slack + 1e-9
    deviation = values.std(axis=1, ddof=1) if values.shape[1] > 1 else np.zeros(len(values))
    matches: NDArray[np.bool_] = (np.abs(values.mean(axis=1) - cells[name]) <= half) & (
        np.abs(deviation - cells.get(f"{name}_std", 0.0)) <= half
    )
    return matches


def _seeds(
    cells: Cells,
    name: str,
    counts: Sequence[NDArray[np.int64]],
    values: Sequence[NDArray[np.float64]],
    decimals: int = 2,
) -> NDArray[np.int64]:
    """Return counts (one column per seed) whose values have the printed mean and deviation.

    Args:
        cells: Cells of the row.
        name: Name of the column.
        counts: Possible counts for each seed.
        values: Value of each count in the column, ascending.
        decimals: Decimals of the printed numbers.
    """
    half, seeds = 0.5 * 10**-decimals + 1e-9, len(counts)
    mean, deviation = cells[name], cells.get(f"{name}_std", 0.0)
    # Upper bounds of the sum of squared distances from the mean, and of the sum of distances.
    most, beside = (seeds - 1) * (deviation + half) ** 2 + seeds * half**2, seeds * half
    rows, columns = np.zeros((1, 0), dtype=np.int64), np.zeros((1, 0))
    for left, seed_counts, seed_values in zip(range(seeds)[::-1], counts, values, strict=True):
        far, squares = (columns - mean).sum(axis=1), ((columns - mean) ** 2).sum(axis=1)
        if left:
            # The remaining seeds must offset `far`, which costs at least far**2 / left.
            middle = -far / (left + 1)
            room = (most - squares - far**2 / (left + 1)) * left / (left + 1)
            reach = np.sqrt(np.maximum(room, 0)) + beside
        else:
            middle, reach = -far, beside
        low, high = mean + middle - reach, mean + middle + reach
        first, last = (
            np.searchsorted(seed_values, low),
            np.searchsorted(seed_values, high, side="right"),
        )
        before = np.repeat(np.arange(len(rows)), last - first)
        here = np.arange(len(before)) - np.repeat(np.cumsum(last - first) - last, last - first)
        rows = np.column_stack([rows[before], seed_counts[here]])
        columns = np.column_stack([columns[before], seed_values[here]])
    return rows[_meets(columns, cells, name, decimals)]


def _counts(cells: Cells, name: str, seeds: int, most: int, unit: int = 1) -> NDArray[np.int64]:
    """Return counts up to `most` (one column per seed) that, times `unit`, match a column."""
    every = np.arange(most + 1)
    printed = (unit * every).astype(np.float64)
    return _seeds(cells, name, [every] * seeds, [printed] * seeds)


def _right(cells: Cells, originals: tuple[int, int], seeds: int) -> list[tuple[Counts, Counts]]:
    """Return the correct originals of each seed, literal and idiomatic (the seed order is free)."""
    literal_ones, idiomatic_ones = (
        _counts(cells, f"success_{kind}", seeds, most, VARIANTS)
        for kind, most in zip(KINDS, originals, strict=True)
    )
    pairs = []
    for literal in literal_ones:
        both = 1.0 * VARIANTS * (literal + idiomatic_ones)
        for idiomatic in idiomatic_ones[_meets(both, cells, "success")]:
            runs = list(zip(map(int, literal), map(int, idiomatic), strict=True))
            if runs == sorted(runs):
                pairs.append((tuple(map(int, literal)), tuple(map(int, idiomatic))))
    return pairs


def _ways(
    cells: Cells, rights: list[tuple[Counts, Counts]], *, rounded: bool, slack: float
) -> Iterator[Way]:
    """Yield the correct originals and flipped variants of each seed of a language model."""
    for right in rights:
        literal, idiomatic = (
            _flipped_of_kind(cells, kind, counts, rounded=rounded)
            for kind, counts in zip(KINDS, right, strict=True)
        )
        success = VARIANTS * (np.array(right[0]) + np.array(right[1]))
        for literal_counts in literal:
            shares = _shares(literal_counts + idiomatic, success, 2 if rounded else None)
            for idiomatic_counts in idiomatic[
                _meets(shares, cells, "negative_drift_pct", slack=slack)
            ]:
                yield _way(right, literal_counts, idiomatic_counts)


def _ways_of_encoder(
    cells: Cells, rights: list[tuple[Counts, Counts]], *, rounded: bool, slack: float
) -> Iterator[Way]:
    """Yield the same counts for an encoder, for which Table 6 prints flipped and kept variants."""
    decimals = 1 if rounded else None
    most = round(cells["success"] + 3 * cells["success_std"])
    every = _counts(cells, "all_confused", len(rights[0][0]), most)
    for right in rights:
        literal, idiomatic = (VARIANTS * np.array(counts) for counts in right)
        success = literal + idiomatic
        totals = every[_meets(1.0 * (success - every), cells, "none_confused")]
        shares = _shares(totals, success, decimals)
        totals = totals[_meets(shares, cells, "negative_drift_pct")]
        if not len(totals):
            continue
        literal_counts = _flipped_of_kind(cells, "literal", right[0], rounded=rounded)
        for total in totals:
            idiomatic_counts = total - literal_counts
            shares = _shares(idiomatic_counts, idiomatic, decimals)
            fits = ((idiomatic_counts >= 0) & (idiomatic_counts <= idiomatic)).all(axis=1)
            fits &= _meets(shares, cells, "negative_drift_idiomatic_pct", slack=slack)
            for one, other in zip(literal_counts[fits], idiomatic_counts[fits], strict=True):
                yield _way(right, one, other)


def _way(right: tuple[Counts, Counts], *flipped: NDArray[np.int64]) -> Way:
    """Return literal and idiomatic counts by seed."""
    counts = [tuple(map(int, kind_counts)) for kind_counts in flipped]
    return list(zip(zip(*right, strict=True), zip(*counts, strict=True), strict=True))


def _flipped_of_kind(cells: Cells, kind: str, right: Counts, *, rounded: bool) -> NDArray[np.int64]:
    """Return the flipped variants of one kind that match its printed drift, one column per seed."""
    success = VARIANTS * np.array(right)
    if not success.any():
        return np.zeros((1, len(right)), dtype=np.int64)
    counts = [np.arange(most + 1) for most in success]
    values = [
        _shares(seed_counts, most, 1 if rounded else None)
        for seed_counts, most in zip(counts, success, strict=True)
    ]
    # Table 5 prints the drifts of single runs with one decimal.
    decimals = 2 if len(right) > 1 else 1
    return _seeds(cells, f"negative_drift_{kind}_pct", counts, values, decimals)


def _shares(
    flipped: NDArray[np.int64], success: NDArray[np.int64], decimals: int | None
) -> NDArray[np.float64]:
    """Return the flipped variants in percent of the successes, optionally rounded."""
    shares: NDArray[np.float64] = 100 * flipped / success
    return shares if decimals is None else shares.round(decimals)


def _confusion(
    cells: Cells, counts: Way, originals: tuple[int, int]
) -> list[tuple[int, int, int]] | None:
    """Return AC, NC and MX of each seed that fit the seed's counts, or None if none fit."""
    names = ("all_confused", "none_confused", "mixed")
    seeds, total = len(counts), sum(originals)
    all_counts, mixed_counts = (_counts(cells, name, seeds, total) for name in (names[0], names[2]))
    for confused in all_counts:
        none = total - confused - mixed_counts
        fits = _meets(1.0 * none, cells, names[1])
        for mixed, nothing in zip(mixed_counts[fits], none[fits], strict=True):
            confusion = list(
                zip(map(int, confused), map(int, nothing), map(int, mixed), strict=True)
            )
            runs = zip(counts, confusion, strict=True)
            if all(shares_of(SeedRun(*run, row), originals) for run, row in runs):
                return confusion
    return None


def shares_of(run: SeedRun, originals: tuple[int, int]) -> tuple[Share, Share] | None:
    """Return how many correct and wrong originals of each kind have 0, 1, 2 and 3 wrong variants.

    Return None if the flips are inconsistent with AC, NC and MX.
    """
    free = [most - right for most, right in zip(originals, run.right, strict=True)]
    if run.confusion is None:
        # All variants of a wrong original are wrong.
        right = [next(_spread(*counts)) for counts in zip(run.right, run.flipped, strict=True)]
        return Share(right[0], (0, 0, 0, free[0])), Share(right[1], (0, 0, 0, free[1]))
    all_wrong, _, mixed = run.confusion
    choices = [
        list(_spread(right, flipped)) for right, flipped in zip(run.right, run.flipped, strict=True)
    ]
    for literal, idiomatic in product(*choices):
        left_whole = all_wrong - literal[3] - idiomatic[3]
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
    """Yield the ways to distribute flips: numbers of correct originals with 0, 1, 2 and 3 flips."""
    for three in range(flipped // 3 + 1):
        for two in range((flipped - 3 * three) // 2 + 1):
            one = flipped - 3 * three - 2 * two
            if three + two + one <= right:
                yield right - three - two - one, one, two, three


def main() -> None:
    """Print the runs of all rows."""
    published = ROOT / "published"
    originals = printed_originals(published)
    writer = csv.writer(sys.stdout, lineterminator="\n")
    columns = [f"{kind}_{what}" for kind in KINDS for what in ("right", "wrong")]
    writer.writerow(["setting", "model", "language", *columns])

    for key, cells in printed_rows(published).items():
        seeds = solve(key, cells, originals[key[2]]).seeds
        for run in seeds:
            shares = shares_of(run, originals[key[2]]) or ()
            writer.writerow(
                [*key, *(" ".join(map(str, part)) for share in shares for part in share)]
            )


if __name__ == "__main__":
    main()
