"""Sampling ranges of means and deviations over seeds.

The papers' seeds are a sample like ours, so printed numbers are estimates, too. Both ranges are
95% intervals for two normal samples, widened for rounding by half of the last printed decimal:

- Means: Welch's t interval for the difference of two means. If we have a single seed, this is the
  prediction interval of one value, t(n - 1) * s * sqrt(1 + 1 / n), where s is the printed deviation
  over n seeds.
- Deviations: the F interval for the ratio of two variances. With three seeds on both sides, this is
  s / 6.2 to 6.2 * s. A chi-square interval would treat the printed deviation as exact and reject
  24% of the runs that differ only in their three seeds.

A number printed for a single seed has no deviation, and a deviation of 0.00 over a few seeds does
not show that other seeds would agree. In both cases, the pooled deviation of other rows of the
table (the root of their mean variance) is used.

A paper may not state whether its deviations divide by n - 1 (ddof 1, as ours do) or by n (ddof 0).
Each possibility is a reading of the printed number, and being in the range of one reading suffices.
"""

import math
from collections.abc import Sequence

import numpy as np

from pieline.core.uncertainty import CONFIDENCE, Spread

Ranges = dict[str, tuple[float, float]]
"""Sampling ranges by reading of the printed number."""

_TAIL = (1 - CONFIDENCE) / 2
POOLED = "its deviation is that of rows with several seeds"
"""Reading of a number that is printed without a deviation or with a deviation of 0."""
_DRAWS = 4000


def mean_ranges(
    ours: Spread,
    printed: Spread,
    *,
    ddof: Sequence[int] = (1,),
    pool: Sequence[Spread] = (),
    decimals: int = 2,
) -> Ranges:
    """Return the sampling ranges of our mean, keyed by the reading of the printed number.

    Args:
        ours: Mean and deviation (ddof 1) over our seeds.
        printed: Mean and deviation over the paper's seeds.
        ddof: Possible values of ddof in the printed deviation.
        pool: Printed rows whose pooled deviation (ddof 1) replaces one that is missing or 0.
        decimals: Decimals of the printed numbers.

    Returns:
        The ranges; empty if there is neither a printed deviation nor a pool.
    """
    # Only some tables need scipy, and importing it takes half of the time of making a table.
    from scipy.special import stdtrit

    if pool and not printed.deviation:
        deviation, of_pool = pooled(pool)
        error = deviation * math.sqrt(1 / ours.seeds + 1 / printed.seeds)
        half = float(stdtrit(of_pool, 1 - _TAIL)) * error + _rounding(decimals)
        return {POOLED: (printed.mean - half, printed.mean + half)}
    if printed.deviation is None:
        return {}
    ranges = {}
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
        ranges[_reading(chosen)] = (printed.mean - half, printed.mean + half)
    return ranges


def deviation_ranges(
    seeds: int,
    printed: Spread,
    *,
    ddof: Sequence[int] = (1,),
    pool: Sequence[Spread] = (),
    decimals: int = 2,
) -> Ranges:
    """Return the sampling ranges of our deviation over `seeds` (at least 2) seeds.

    The other arguments and the keys are the same as in `mean_ranges`. If the printed deviation is
    0, the lower bound is 0.
    """
    from scipy.special import fdtri

    if pool and not printed.deviation:
        deviation, degrees = pooled(pool)
        high = deviation * math.sqrt(float(fdtri(seeds - 1, degrees, 1 - _TAIL)))
        return {POOLED: (0.0, high + _rounding(decimals))}
    ratios = [float(fdtri(seeds - 1, printed.seeds - 1, tail)) for tail in (_TAIL, 1 - _TAIL)]
    rounding = _rounding(decimals)
    ranges = {}
    for chosen in ddof:
        low, high = (
            math.sqrt(ratio * _variance(printed, chosen, rounded=by))
            for ratio, by in zip(ratios, (-rounding, rounding), strict=True)
        )
        ranges[_reading(chosen)] = (low, high)
    return ranges


def median_tolerance(rows: Sequence[Spread], pool: Sequence[Spread]) -> float:
    """Return the 95% quantile of the difference between two medians over the same rows.

    The quantile is simulated with a fixed seed from 4,000 pairs of medians. For each median, every
    row is drawn from a normal distribution with the row's mean and standard error.

    Args:
        rows: Printed rows over which the median is taken.
        pool: Printed rows whose pooled deviation (ddof 1) replaces one that is missing or 0.
    """
    deviation, _ = pooled(pool)
    errors = [(row.deviation or deviation) / math.sqrt(row.seeds) for row in rows]
    drawn = np.random.default_rng(0).normal(
        [row.mean for row in rows], errors, size=(2, _DRAWS, len(rows))
    )
    first, second = np.median(drawn, axis=2)
    return float(np.quantile(np.abs(first - second), CONFIDENCE))


def pooled(rows: Sequence[Spread]) -> tuple[float, int]:
    """Return the pooled deviation of rows and its degrees of freedom.

    The pooled deviation is the root of the mean variance, weighted by degrees of freedom.
    """
    degrees = sum(row.seeds - 1 for row in rows)
    squares = math.fsum((row.seeds - 1) * (row.deviation or 0.0) ** 2 for row in rows)
    return math.sqrt(squares / degrees), degrees


def _variance(printed: Spread, ddof: int, *, rounded: float = 0.0) -> float:
    """Return the printed variance, converted to ddof 1, after adding `rounded` to the deviation."""
    deviation = max(0.0, (printed.deviation or 0.0) + rounded)
    return deviation**2 * (printed.seeds - ddof) / (printed.seeds - 1)


def _rounding(decimals: int) -> float:
    return 0.5 * 10.0**-decimals


def _reading(ddof: int) -> str:
    return f"printed with ddof {ddof}"
