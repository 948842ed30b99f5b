"""When a mean or a deviation over seeds is within sampling range: what as many seeds explain.

The paper drew its seeds as we draw ours, so each printed number is an estimate, too. Both ranges
are 95 % intervals of two normal samples, and rounding widens them by half of the last printed
decimal:

- a mean within Welch's t interval for the difference of two means. From one seed of ours it is the
  prediction interval of a single value, t(n - 1) * s * sqrt(1 + 1 / n), where s is the printed
  deviation of n seeds;
- a deviation within the F interval for the ratio of two variances. With three seeds on both sides
  it reaches from s / 6.2 to 6.2 * s. Chi-square would take the printed deviation for the true one,
  and call 24 % of the runs different that differ in nothing but their three seeds.

A printed number of a single seed has no deviation, and 0.00 of a few seeds does not say that
others would not differ. There the deviations of other rows of the table stand in, pooled (the root
of their mean variance).

A paper may not say whether its deviations divide by n - 1 (ddof 1, as ours) or by n (ddof 0); each
is a reading of the printed number, and one that holds suffices.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from pieline.core.uncertainty import CONFIDENCE, Spread
from pieline.reporting.printed import PrintedRow

Ranges = dict[str, tuple[float, float]]
"""Sampling ranges by reading of the printed number."""

_TAIL = (1 - CONFIDENCE) / 2
POOLED = "it deviates as the rows with several seeds do"
"""The reading of a number that is printed without a deviation, or with one of 0."""
_DRAWS = 4000


@dataclass(frozen=True)
class PrintedSeeds:
    """The seeds behind printed means and deviations.

    Attributes:
        number: of seeds where a deviation is printed; otherwise there is one.
        ddof: what the printed deviations may divide by (see `mean_ranges`).
        pool: spreads to use where a column's printed deviation is missing or 0, by its name.
    """

    number: int
    ddof: Sequence[int] = (1,)
    pool: Callable[[str], Sequence[Spread]] = lambda _: ()

    def spread(self, printed: PrintedRow, name: str) -> Spread | None:
        """The printed mean and deviation of a column."""
        if name not in printed:
            return None
        deviation = printed.get(f"{name}_std")
        seeds = 1 if deviation is None else self.number
        return Spread(mean=printed[name], deviation=deviation, seeds=seeds)

    def ranges(self, printed: PrintedRow, name: str, ours: Spread | None) -> tuple[Ranges, Ranges]:
        """Sampling ranges of our mean and our deviation."""
        theirs, pool, of_deviation = self.spread(printed, name), self.pool(name), Ranges()
        if not (ours and theirs):
            return {}, {}
        if not (ours.deviation is None or theirs.deviation is None):
            of_deviation = deviation_ranges(ours.seeds, theirs, ddof=self.ddof, pool=pool)
        return mean_ranges(ours, theirs, ddof=self.ddof, pool=pool), of_deviation


def mean_ranges(
    ours: Spread,
    printed: Spread,
    *,
    ddof: Sequence[int] = (1,),
    pool: Sequence[Spread] = (),
    decimals: int = 2,
) -> Ranges:
    """Where our mean is within sampling range.

    Args:
        ours: mean and deviation (ddof 1) over our seeds.
        printed: what the paper prints over its seeds.
        ddof: what the printed deviation may divide by.
        pool: printed rows whose deviations (ddof 1) stand in for one that is unknown or 0.
        decimals: of the printed numbers.

    Returns:
        Nothing where there is no printed deviation, nor one that stands in.
    """
    # Only some tables need it, and it takes half of the time of making one to import.
    from scipy.special import stdtrit

    if pool and not printed.deviation:
        deviation, of_pool = pooled(pool)
        error = deviation * math.sqrt(1 / ours.seeds + 1 / printed.seeds)
        half = float(stdtrit(of_pool, 1 - _TAIL)) * error + _rounding(decimals)
        return {POOLED: (printed.mean - half, printed.mean + half)}
    if printed.deviation is None:
        return {}
    found = {}
    for chosen in ddof:
        variance = _variance(printed, chosen)
        theirs, degrees = variance / printed.seeds, float(printed.seeds - 1)
        if ours.deviation is None:
            own = variance / ours.seeds
        else:
            own = ours.deviation**2 / ours.seeds
            if own:
                parts = own**2 / (ours.seeds - 1) + theirs**2 / (printed.seeds - 1)
                degrees = (own + theirs) ** 2 / parts
        half = float(stdtrit(degrees, 1 - _TAIL)) * math.sqrt(own + theirs) + _rounding(decimals)
        found[_reading(chosen)] = (printed.mean - half, printed.mean + half)
    return found


def deviation_ranges(
    seeds: int,
    printed: Spread,
    *,
    ddof: Sequence[int] = (1,),
    pool: Sequence[Spread] = (),
    decimals: int = 2,
) -> Ranges:
    """Where our deviation over so many seeds, more than one, is within sampling range.

    For the other arguments see `mean_ranges`; of a printed 0 there is only an upper bound.
    """
    from scipy.special import fdtri

    if pool and not printed.deviation:
        deviation, degrees = pooled(pool)
        high = deviation * math.sqrt(float(fdtri(seeds - 1, degrees, 1 - _TAIL)))
        return {POOLED: (0.0, high + _rounding(decimals))}
    ratios = [float(fdtri(seeds - 1, printed.seeds - 1, tail)) for tail in (_TAIL, 1 - _TAIL)]
    rounding = _rounding(decimals)
    found = {}
    for chosen in ddof:
        low, high = (
            math.sqrt(ratio * _variance(printed, chosen, rounded=by))
            for ratio, by in zip(ratios, (-rounding, rounding), strict=True)
        )
        found[_reading(chosen)] = (low, high)
    return found


def median_tolerance(rows: Sequence[Spread], pool: Sequence[Spread]) -> float:
    """How far sampling may take our median over the same rows from the printed one.

    So far apart, or less, are the medians of 95 % of 4,000 pairs of draws, which are seeded: each
    draws every row from the normal distribution of its mean and standard error.

    Args:
        rows: those that the median is of, as printed.
        pool: as in `mean_ranges`.
    """
    deviation, _ = pooled(pool)
    errors = [(row.deviation or deviation) / math.sqrt(row.seeds) for row in rows]
    drawn = np.random.default_rng(0).normal(
        [row.mean for row in rows], errors, size=(2, _DRAWS, len(rows))
    )
    first, second = np.median(drawn, axis=2)
    return float(np.quantile(np.abs(first - second), CONFIDENCE))


def pooled(rows: Sequence[Spread]) -> tuple[float, int]:
    """The root of the mean variance of some rows, by degrees of freedom, and these together."""
    degrees = sum(row.seeds - 1 for row in rows)
    squares = math.fsum((row.seeds - 1) * (row.deviation or 0.0) ** 2 for row in rows)
    return math.sqrt(squares / degrees), degrees


def _variance(printed: Spread, ddof: int, *, rounded: float = 0.0) -> float:
    """The printed variance as it is with ddof 1, the deviation moved by its rounding."""
    deviation = max(0.0, (printed.deviation or 0.0) + rounded)
    return deviation**2 * (printed.seeds - ddof) / (printed.seeds - 1)


def _rounding(decimals: int) -> float:
    return 0.5 * 10.0**-decimals


def _reading(ddof: int) -> str:
    return f"printed with ddof {ddof}"
