"""Sampling ranges of means and deviations over seeds.

A printed number over a few seeds is an estimate, as ours is. A sampling range contains our number
with a probability of 95% if both samples of seeds are from the same normal distribution. The range
is widened by half a unit of the last printed decimal, because printed numbers are rounded.

- For means, the range is Welch's t interval for the difference between two means. If we have a
  single seed, the range is the prediction interval of one value, t(n - 1) * s * sqrt(1 + 1 / n),
  where s is the printed deviation over n seeds.
- For deviations, the range is the F interval for the ratio of two variances. With three seeds each,
  the range is s / 6.2 to 6.2 * s. A chi-square interval would treat the printed deviation as exact
  and reject 24% of the runs that differ only in their three seeds.

A number printed for a single seed has no deviation, and a deviation of 0.00 over a few seeds does
not show that other seeds would agree. In both cases, the pooled deviation of other rows of the
table replaces the printed deviation.

A paper may not state whether its deviations divide by n - 1 (ddof 1, as ours do) or by n (ddof 0).
Each possibility is a reading of the printed number. A number is within sampling range if it is in
the range of at least one reading.
"""

import math
from collections.abc import Sequence

import numpy as np

from pieline.core.uncertainty import CONFIDENCE, Spread

Ranges = dict[str, tuple[float, float]]
"""Lower and upper bound of the sampling range, by reading of the printed number."""

_TAIL = (1 - CONFIDENCE) / 2
"""Probability of a value below a 95% interval, and of a value above it."""
POOLED = "its deviation is that of rows with several seeds"
"""Reading of a number that is printed without a deviation or with a deviation of 0."""
_DRAWS = 4000
"""Number of simulated pairs of medians."""


def mean_ranges(
    ours: Spread,
    printed: Spread,
    *,
    ddof: Sequence[int] = (1,),
    pool: Sequence[Spread] = (),
    decimals: int = 2,
) -> Ranges:
    """Return the sampling range of our mean for each reading of the printed number.

    Args:
        ours: Mean and deviation (ddof 1) over our seeds.
        printed: Mean and deviation over the paper's seeds.
        ddof: Possible values of ddof in the printed deviation.
        pool: Printed rows whose pooled deviation (ddof 1) replaces a missing deviation or 0.
        decimals: Decimals of the printed numbers.

    Returns:
        Lower and upper bound of our mean, by reading of the printed number; empty if there is
            neither a printed deviation nor a pool.
    """
    # Imported here because the import takes half the time of making a table without seeds.
    from scipy.special import stdtrit

    if pool and not printed.deviation:
        deviation, pool_degrees = pooled(pool)
        error = deviation * math.sqrt(1 / ours.seeds + 1 / printed.seeds)
        margin = float(stdtrit(pool_degrees, 1 - _TAIL)) * error + _rounding(decimals)
        return {POOLED: (printed.mean - margin, printed.mean + margin)}
    if printed.deviation is None:
        return {}
    ranges = {}
    for possible_ddof in ddof:
        variance = _variance(printed, possible_ddof)
        printed_squared_error = variance / printed.seeds
        if ours.deviation is None:
            # Without a deviation of ours, our values are assumed to vary as the printed values do.
            our_squared_error = variance / ours.seeds
        else:
            our_squared_error = ours.deviation**2 / ours.seeds
        error = math.sqrt(our_squared_error + printed_squared_error)
        degrees = _welch_degrees(ours, our_squared_error, printed, printed_squared_error)
        margin = float(stdtrit(degrees, 1 - _TAIL)) * error + _rounding(decimals)
        ranges[_reading(possible_ddof)] = (printed.mean - margin, printed.mean + margin)
    return ranges


def _welch_degrees(
    ours: Spread, our_squared_error: float, printed: Spread, printed_squared_error: float
) -> float:
    """Return the degrees of freedom of Welch's t interval for the difference between two means.

    If our deviation is missing or 0, only the printed deviation contributes.

    Args:
        ours: Mean and deviation over our seeds.
        our_squared_error: Squared standard error of our mean.
        printed: Mean and deviation over the paper's seeds.
        printed_squared_error: Squared standard error of the printed mean.
    """
    if not ours.deviation:
        return float(printed.seeds - 1)
    ours_part = our_squared_error**2 / (ours.seeds - 1)
    printed_part = printed_squared_error**2 / (printed.seeds - 1)
    return (our_squared_error + printed_squared_error) ** 2 / (ours_part + printed_part)


def deviation_ranges(
    seeds: int,
    printed: Spread,
    *,
    ddof: Sequence[int] = (1,),
    pool: Sequence[Spread] = (),
    decimals: int = 2,
) -> Ranges:
    """Return the sampling range of our deviation for each reading of the printed deviation.

    If the printed deviation is 0, the lower bound is 0.

    Args:
        seeds: Number of our seeds, at least 2.
        printed: Mean and deviation over the paper's seeds.
        ddof: Possible values of ddof in the printed deviation.
        pool: Printed rows whose pooled deviation (ddof 1) replaces a deviation of 0.
        decimals: Decimals of the printed deviation.
    """
    from scipy.special import fdtri

    if pool and not printed.deviation:
        deviation, degrees = pooled(pool)
        high = deviation * math.sqrt(float(fdtri(seeds - 1, degrees, 1 - _TAIL)))
        return {POOLED: (0.0, high + _rounding(decimals))}
    lowest_ratio = float(fdtri(seeds - 1, printed.seeds - 1, _TAIL))
    highest_ratio = float(fdtri(seeds - 1, printed.seeds - 1, 1 - _TAIL))
    rounding = _rounding(decimals)
    ranges = {}
    for possible_ddof in ddof:
        lowest_variance = _variance(printed, possible_ddof, rounding=-rounding)
        highest_variance = _variance(printed, possible_ddof, rounding=rounding)
        ranges[_reading(possible_ddof)] = (
            math.sqrt(lowest_ratio * lowest_variance),
            math.sqrt(highest_ratio * highest_variance),
        )
    return ranges


def median_tolerance(rows: Sequence[Spread], pool: Sequence[Spread]) -> float:
    """Return the difference between two medians that is exceeded with a probability of 5%.

    The difference is estimated from 4,000 simulated pairs of medians over the same rows. For each
    median, a value is drawn for every row from a normal distribution with the row's mean and
    standard error.

    Args:
        rows: Printed rows over which the median is taken.
        pool: Printed rows whose pooled deviation (ddof 1) replaces a missing deviation or 0.
    """
    pooled_deviation, _ = pooled(pool)
    means = [row.mean for row in rows]
    errors = [(row.deviation or pooled_deviation) / math.sqrt(row.seeds) for row in rows]
    drawn_rows = np.random.default_rng(0).normal(means, errors, size=(2, _DRAWS, len(rows)))
    first_medians, second_medians = np.median(drawn_rows, axis=2)
    return float(np.quantile(np.abs(first_medians - second_medians), CONFIDENCE))


def pooled(rows: Sequence[Spread]) -> tuple[float, int]:
    """Return the pooled deviation (ddof 1) of rows, and the degrees of freedom of this deviation.

    The pooled deviation is the root of the rows' mean variance, weighted by degrees of freedom.
    """
    degrees = sum(row.seeds - 1 for row in rows)
    squares = math.fsum((row.seeds - 1) * (row.deviation or 0.0) ** 2 for row in rows)
    return math.sqrt(squares / degrees), degrees


def _variance(printed: Spread, ddof: int, *, rounding: float = 0.0) -> float:
    """Return the variance (ddof 1) that corresponds to a printed deviation.

    Args:
        printed: Mean and deviation over the paper's seeds.
        ddof: Value of ddof in the printed deviation.
        rounding: Assumed difference between the unrounded deviation and the printed deviation.
    """
    deviation = max(0.0, (printed.deviation or 0.0) + rounding)
    return deviation**2 * (printed.seeds - ddof) / (printed.seeds - 1)


def _rounding(decimals: int) -> float:
    """Return the largest difference between a number and the number rounded to these decimals."""
    return 0.5 * 10.0**-decimals


def _reading(ddof: int) -> str:
    return f"printed with ddof {ddof}"
