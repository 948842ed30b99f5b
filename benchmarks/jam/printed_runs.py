"""Find the runs behind the printed cells of ID10M-JAM, as whole numbers of sentences.

Tables 3, 5 and 6 print means over seeds. Searched are, seed by seed, the right originals and their
flipped variants, literal and idiomatic, and how many originals have all, none or some of their
variants wrong. Of encoders Table 6 prints flipped and kept variants instead, which says no more of
originals. Prints the runs as CSV, which `rehearsal/answers/jam_runs.csv` holds:

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
from rehearsal.answers.printed_runs import (
    FINE_TUNED,
    VARIANTS,
    Counts,
    Key,
    Share,
    text_numbers,
)

ROOT = Path(__file__).parents[2]
_ABLATED: Key = ("zero_shot", "GPT-4o mini", "english")
"""The run whose wrong variants are rewritten with a neutral context (appendix G), at its first
seed."""
Cells = Mapping[str, float]
KINDS = ("literal", "idiomatic")
Way = list[tuple[tuple[int, int], tuple[int, int]]]
"""Of each seed right originals and flipped variants, literal and idiomatic ones."""
_SLACK = 0.02
"""By how much the last cell of a row may be missed that contradicts itself (mBERT, English: the
drift of its idiomatic variants deviates by 4.98 where Table 5 has 5.00)."""


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


class Solution(NamedTuple):
    """Seeds that give the cells of a row.

    Attributes:
        seeds: one run each.
        rounded: whether they give its drifts only if the paper took means of rounded values: of
            one decimal, in Table 3 of two for language models.
    """

    seeds: tuple[SeedRun, ...]
    rounded: bool


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


def printed_rows(published: Path) -> dict[Key, dict[str, float]]:
    """The cells of Tables 3, 5 and 6 by setting, model and language, in the order of Table 3.

    Where the two usages do not add up to all successes (mBERT, English), the idiomatic ones are
    what is left of all.
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
    """The runs behind a row.

    Args:
        key: the row.
        cells: its printed numbers (`printed_rows`).
        originals: literal and idiomatic ones of the language.

    Raises:
        ValueError: there are none.
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
                return Solution(tuple(SeedRun(*run, of) for run, of in runs), rounded)
    raise ValueError(f"no runs give the cells of {key}")


def _meets(
    values: NDArray[np.float64], cells: Cells, name: str, decimals: int = 2, slack: float = 0.0
) -> NDArray[np.bool_]:
    """Which rows of values, a column a seed, have the printed mean and deviation."""
    half = 0.5 * 10**-decimals + slack + 1e-9
    deviation = values.std(axis=1, ddof=1) if values.shape[1] > 1 else np.zeros(len(values))
    found: NDArray[np.bool_] = (np.abs(values.mean(axis=1) - cells[name]) <= half) & (
        np.abs(deviation - cells.get(f"{name}_std", 0.0)) <= half
    )
    return found


def _seeds(
    cells: Cells,
    name: str,
    counts: Sequence[NDArray[np.int64]],
    values: Sequence[NDArray[np.float64]],
    decimals: int = 2,
) -> NDArray[np.int64]:
    """Counts, a column a seed, whose values have the printed mean and deviation.

    Args:
        cells: the row.
        name: of the column.
        counts: those that there can be, of each seed.
        values: what each of them is in the column, ascending.
        decimals: of the printed numbers.
    """
    half, seeds = 0.5 * 10**-decimals + 1e-9, len(counts)
    mean, deviation = cells[name], cells.get(f"{name}_std", 0.0)
    # What the squared distances from the mean add up to at most, and the distances themselves.
    most, beside = (seeds - 1) * (deviation + half) ** 2 + seeds * half**2, seeds * half
    rows, found = np.zeros((1, 0), dtype=np.int64), np.zeros((1, 0))
    for left, some, those in zip(range(seeds)[::-1], counts, values, strict=True):
        far, spent = (found - mean).sum(axis=1), ((found - mean) ** 2).sum(axis=1)
        if left:
            # The seeds that are left have to make up for `far`, which takes far**2 / left.
            middle = -far / (left + 1)
            room = (most - spent - far**2 / (left + 1)) * left / (left + 1)
            reach = np.sqrt(np.maximum(room, 0)) + beside
        else:
            middle, reach = -far, beside
        low, high = mean + middle - reach, mean + middle + reach
        first, last = np.searchsorted(those, low), np.searchsorted(those, high, side="right")
        before = np.repeat(np.arange(len(rows)), last - first)
        here = np.arange(len(before)) - np.repeat(np.cumsum(last - first) - last, last - first)
        rows = np.column_stack([rows[before], some[here]])
        found = np.column_stack([found[before], those[here]])
    return rows[_meets(found, cells, name, decimals)]


def _counts(cells: Cells, name: str, seeds: int, most: int, unit: int = 1) -> NDArray[np.int64]:
    """Counts up to `most`, each of which counts `unit` in a column that prints counts."""
    every = np.arange(most + 1)
    printed = (unit * every).astype(np.float64)
    return _seeds(cells, name, [every] * seeds, [printed] * seeds)


def _right(cells: Cells, originals: tuple[int, int], seeds: int) -> list[tuple[Counts, Counts]]:
    """Right originals, literal and idiomatic, of each seed (the order of seeds is free)."""
    literal_ones, idiomatic_ones = (
        _counts(cells, f"success_{kind}", seeds, most, VARIANTS)
        for kind, most in zip(KINDS, originals, strict=True)
    )
    found = []
    for literal in literal_ones:
        both = 1.0 * VARIANTS * (literal + idiomatic_ones)
        for idiomatic in idiomatic_ones[_meets(both, cells, "success")]:
            runs = list(zip(map(int, literal), map(int, idiomatic), strict=True))
            if runs == sorted(runs):
                found.append((tuple(map(int, literal)), tuple(map(int, idiomatic))))
    return found


def _ways(
    cells: Cells, rights: list[tuple[Counts, Counts]], *, rounded: bool, slack: float
) -> Iterator[Way]:
    """Right originals and flipped variants of each seed of a language model."""
    for right in rights:
        literal, idiomatic = (
            _flipped_of_kind(cells, kind, counts, rounded=rounded)
            for kind, counts in zip(KINDS, right, strict=True)
        )
        success = VARIANTS * (np.array(right[0]) + np.array(right[1]))
        for some in literal:
            shares = _shares(some + idiomatic, success, 2 if rounded else None)
            for others in idiomatic[_meets(shares, cells, "negative_drift_pct", slack=slack)]:
                yield _way(right, some, others)


def _ways_of_encoder(
    cells: Cells, rights: list[tuple[Counts, Counts]], *, rounded: bool, slack: float
) -> Iterator[Way]:
    """The same of an encoder, of which Table 6 has flipped and kept variants."""
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
        some = _flipped_of_kind(cells, "literal", right[0], rounded=rounded)
        for total in totals:
            others = total - some
            shares = _shares(others, idiomatic, decimals)
            fits = ((others >= 0) & (others <= idiomatic)).all(axis=1)
            fits &= _meets(shares, cells, "negative_drift_idiomatic_pct", slack=slack)
            for one, other in zip(some[fits], others[fits], strict=True):
                yield _way(right, one, other)


def _way(right: tuple[Counts, Counts], *flipped: NDArray[np.int64]) -> Way:
    """Seed by seed, literal and idiomatic ones."""
    counts = [tuple(map(int, some)) for some in flipped]
    return list(zip(zip(*right, strict=True), zip(*counts, strict=True), strict=True))


def _flipped_of_kind(cells: Cells, kind: str, right: Counts, *, rounded: bool) -> NDArray[np.int64]:
    """Flipped variants of one kind that have its printed drift, a row a way, a column a seed."""
    success = VARIANTS * np.array(right)
    if not success.any():
        return np.zeros((1, len(right)), dtype=np.int64)
    counts = [np.arange(most + 1) for most in success]
    values = [
        _shares(some, most, 1 if rounded else None)
        for some, most in zip(counts, success, strict=True)
    ]
    # Table 5 prints the drifts of single runs with one decimal.
    decimals = 2 if len(right) > 1 else 1
    return _seeds(cells, f"negative_drift_{kind}_pct", counts, values, decimals)


def _shares(
    flipped: NDArray[np.int64], success: NDArray[np.int64], decimals: int | None
) -> NDArray[np.float64]:
    """Flipped variants in per cent of the successes, rounded or as they are."""
    shares: NDArray[np.float64] = 100 * flipped / success
    return shares if decimals is None else shares.round(decimals)


def _confusion(
    cells: Cells, counts: Way, originals: tuple[int, int]
) -> list[tuple[int, int, int]] | None:
    """AC, NC and MX of each seed, where its right originals and flips leave room for them."""
    names = ("all_confused", "none_confused", "mixed")
    seeds, total = len(counts), sum(originals)

    every, some = (_counts(cells, name, seeds, total) for name in (names[0], names[2]))
    for confused in every:
        none = total - confused - some
        fits = _meets(1.0 * none, cells, names[1])
        for mixed, nothing in zip(some[fits], none[fits], strict=True):
            found = list(zip(map(int, confused), map(int, nothing), map(int, mixed), strict=True))
            runs = zip(counts, found, strict=True)
            if all(shares_of(SeedRun(*run, of), originals) for run, of in runs):
                return found
    return None


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


def main() -> None:
    """Print the runs of all rows."""
    published = ROOT / "published"
    originals = printed_originals(published)
    ablated = text_numbers(published)["jam.neutral_variants"]
    writer = csv.writer(sys.stdout, lineterminator="\n")
    columns = [f"{kind}_{what}" for kind in KINDS for what in ("right", "wrong")]
    writer.writerow(["setting", "model", "language", *columns])

    def misses_ablated(shares: Sequence[Share]) -> float:
        counts = [each for share in shares for each in share]
        return abs(sum(wrong * each[wrong] for each in counts for wrong in range(4)) - ablated)

    for key, cells in printed_rows(published).items():
        seeds = solve(key, cells, originals[key[2]]).seeds
        runs = [shares_of(run, originals[key[2]]) or () for run in seeds]
        for shares in sorted(runs, key=misses_ablated) if key == _ABLATED else runs:
            writer.writerow(
                [*key, *(" ".join(map(str, part)) for share in shares for part in share)]
            )


if __name__ == "__main__":
    main()
