"""Runs that give the printed cells of ID10M-JAM: the whole numbers behind means and deviations.

Tables 3, 5 and 6 print means over seeds. Searched are, seed by seed, the right originals and their
flipped variants, literal and idiomatic, and how many originals have all, none or some of their
variants wrong.
"""

import csv
from collections.abc import Iterator, Mapping
from itertools import combinations_with_replacement, permutations, product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from support import ROOT

VARIANTS = 3
ORIGINALS = {"english": (20, 158), "german": (8, 129)}
"""Literal and idiomatic originals (section 5)."""

KINDS = ("literal", "idiomatic")
Key = tuple[str, str, str]
Counts = tuple[int, ...]


class SeedRun(NamedTuple):
    """One seed of a run.

    Attributes:
        right: right originals, literal and idiomatic.
        flipped: wrong variants of these.
        confusion: originals with all, none, some of their variants wrong (Table 6).
    """

    right: tuple[int, int]
    flipped: tuple[int, int]
    confusion: tuple[int, int, int]


class Solution(NamedTuple):
    """Seeds that give the cells of a row.

    Attributes:
        seeds: one run each.
        rounded: whether they give its drifts only if the paper took means of rounded values: of
            one decimal in Table 5, of two in Table 3.
    """

    seeds: tuple[SeedRun, ...]
    rounded: bool


def printed_rows() -> dict[Key, dict[str, float | None]]:
    """The cells of all language models, by setting, model and language."""
    rows: dict[Key, dict[str, float | None]] = {}
    for number in (3, 5, 6):
        with (ROOT / f"published/jam_table{number}.csv").open(encoding="utf-8") as stream:
            for row in csv.DictReader(stream):
                key = (row.pop("setting"), row.pop("model"), row.pop("language"))
                row.pop("group", None)
                if key[0] != "fine_tuned":
                    cells = {name: float(text) if text else None for name, text in row.items()}
                    rows.setdefault(key, {}).update(cells)
    return rows


def solve(key: Key, cells: Mapping[str, float | None]) -> Solution:
    """The runs behind a row.

    Raises:
        ValueError: there are none.
    """
    seeds = 1 if cells["success_std"] is None else 3
    for rounded in (False, True):
        for right in _right(cells, ORIGINALS[key[2]], seeds):
            for flipped in _flipped(cells, right, rounded=rounded):
                confusion = _confusion(cells, right, flipped, ORIGINALS[key[2]])
                if confusion:
                    runs = zip(
                        zip(*right, strict=True), zip(*flipped, strict=True), confusion, strict=True
                    )
                    return Solution(tuple(SeedRun(*run) for run in runs), rounded)
    raise ValueError(f"no runs give the cells of {key}")


def _meets(
    values: NDArray[np.float64], cells: Mapping[str, float | None], name: str, decimals: int = 2
) -> NDArray[np.bool_]:
    """Which rows of values, a column a seed, have the printed mean and deviation."""
    half = 0.5 * 10**-decimals + 1e-9
    deviation = values.std(axis=1, ddof=1) if values.shape[1] > 1 else np.zeros(len(values))
    mean_is_met = np.abs(values.mean(axis=1) - cells[name]) <= half
    found: NDArray[np.bool_] = mean_is_met & (
        np.abs(deviation - (cells[f"{name}_std"] or 0)) <= half
    )
    return found


def _right(
    cells: Mapping[str, float | None], originals: tuple[int, int], seeds: int
) -> Iterator[tuple[Counts, Counts]]:
    """Right originals, literal and idiomatic, of each seed (the order of seeds is free)."""

    def of(kind: str, most: int) -> list[Counts]:
        mean, deviation = cells[f"success_{kind}"], cells[f"success_{kind}_std"] or 0
        assert mean is not None
        low, high = (round((mean + sign * 2 * deviation) / VARIANTS) for sign in (-1, 1))
        counts = combinations_with_replacement(
            range(max(0, low - 1), min(most, high + 1) + 1), seeds
        )
        listed = np.array(list(counts))
        return [
            tuple(map(int, row))
            for row in listed[_meets(1.0 * VARIANTS * listed, cells, f"success_{kind}")]
        ]

    for literal in of("literal", originals[0]):
        for idiomatic in of("idiomatic", originals[1]):
            for order in sorted(set(permutations(idiomatic))):
                both = VARIANTS * (np.array([literal]) + np.array([order]))
                if _meets(1.0 * both, cells, "success")[0]:
                    yield literal, order


def _flipped(
    cells: Mapping[str, float | None], right: tuple[Counts, Counts], *, rounded: bool
) -> Iterator[tuple[Counts, Counts]]:
    """Flipped variants, literal and idiomatic, of each seed."""
    # Table 5 prints the drifts of single runs with one decimal.
    decimals = 2 if len(right[0]) > 1 else 1

    def of(kind: str, counts: Counts) -> NDArray[np.int64]:
        mean, deviation = (
            cells[f"negative_drift_{kind}_pct"],
            cells[f"negative_drift_{kind}_pct_std"],
        )
        success = VARIANTS * np.array(counts)
        if not success.any():
            return np.zeros((1, len(counts)), dtype=np.int64)
        near = mean * success / 100
        wide = 1.5 * (deviation or 0) * success / 100 + 1.5
        ranges = [
            range(max(0, int(middle - reach)), min(int(most), int(middle + reach + 1)) + 1)
            for middle, reach, most in zip(near, wide, success, strict=True)
        ]
        listed = np.array(list(product(*ranges)))
        shares = 100 * listed / success
        if rounded:
            shares = shares.round(1)
        return listed[_meets(shares, cells, f"negative_drift_{kind}_pct", decimals)]

    literal, idiomatic = (of(kind, counts) for kind, counts in zip(KINDS, right, strict=True))
    success = VARIANTS * (np.array(right[0]) + np.array(right[1]))
    for some in literal:
        shares = 100 * (some + idiomatic) / success
        if rounded:
            shares = shares.round(2)
        for others in idiomatic[_meets(shares, cells, "negative_drift_pct")]:
            yield tuple(map(int, some)), tuple(map(int, others))


def _confusion(
    cells: Mapping[str, float | None],
    right: tuple[Counts, Counts],
    flipped: tuple[Counts, Counts],
    originals: tuple[int, int],
) -> list[tuple[int, int, int]] | None:
    """AC, NC and MX of each seed, where the flips leave room for them."""
    names = ("all_confused", "none_confused", "mixed")
    seeds, total = len(right[0]), sum(originals)

    def of(name: str) -> NDArray[np.int64]:
        mean, deviation = cells[name], cells[f"{name}_std"] or 0
        low, high = int(mean - 2 * deviation) - 1, int(mean + 2 * deviation) + 2
        listed = np.array(list(product(range(max(0, low), high + 1), repeat=seeds)))
        return listed[_meets(1.0 * listed, cells, name)]

    every, some = of(names[0]), of(names[2])
    for confused in every:
        none = total - confused - some
        for mixed, nothing in zip(
            some[_meets(1.0 * none, cells, names[1])],
            none[_meets(1.0 * none, cells, names[1])],
            strict=True,
        ):
            found = list(zip(map(int, confused), map(int, nothing), map(int, mixed), strict=True))
            runs = zip(zip(*right, strict=True), zip(*flipped, strict=True), found, strict=True)
            if all(shares_of(SeedRun(*run), originals) for run in runs):
                return found
    return None


class Share(NamedTuple):
    """Originals of one kind by their wrong variants: `right` ones and wrong ones."""

    right: tuple[int, int, int, int]
    wrong: tuple[int, int, int, int]


def shares_of(run: SeedRun, originals: tuple[int, int]) -> tuple[Share, Share] | None:
    """How many right and wrong originals of each kind have 0, 1, 2 and 3 wrong variants.

    Null where the flips do not go with AC, NC and MX.
    """
    whole, _, mixed = run.confusion
    free = [most - right for most, right in zip(originals, run.right, strict=True)]
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


def wrong_variants(run: SeedRun, language: str) -> list[tuple[bool, int]]:
    """Of each original, literal ones first: whether it is right, and its wrong variants."""
    shares = shares_of(run, ORIGINALS[language])
    assert shares
    return [
        (is_right, wrong)
        for share in shares
        for is_right, counts in ((True, share.right), (False, share.wrong))
        for wrong, count in enumerate(counts)
        for _ in range(count)
    ]
