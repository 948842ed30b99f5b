"""How far a number would move with other data or another seed: intervals and deviations."""

from collections.abc import Sequence
from statistics import fmean, stdev

import numpy as np
import numpy.typing as npt

from pieline.core.records import Frozen

CONFIDENCE = 0.95


class Interval(Frozen):
    """A 95 % percentile bootstrap interval, over the units that its metric names."""

    low: float
    high: float


class Spread(Frozen):
    """Mean over seeds, and the standard deviation (ddof 1), null for a single seed."""

    mean: float
    deviation: float | None
    seeds: int


def spread(values: Sequence[float]) -> Spread:
    """Mean and standard deviation (ddof 1) over seeds.

    Raises:
        ValueError: no values.
    """
    if not values:
        raise ValueError("no values")
    deviation = stdev(values) if len(values) > 1 else None
    return Spread(mean=fmean(values), deviation=deviation, seeds=len(values))


def ratio_interval(
    above: Sequence[float], below: Sequence[float], *, resamples: int, seed: int
) -> Interval | None:
    """Percentile bootstrap interval of sum(above) / sum(below) over units drawn with replacement.

    `above` and `below` have one part a unit: with the sums and sizes of clusters it is the interval
    of the mean over their members, drawn by cluster. None where the denominator is 0, or where
    there is one unit, which cannot tell how others differ; draws in which it is 0 are left out.
    """
    number = len(above)
    if number < 2 or not sum(below):
        return None
    generator = np.random.default_rng(seed)
    drawn: npt.NDArray[np.int64] = generator.multinomial(
        number, np.full(number, 1 / number), size=resamples
    )
    denominators = drawn @ np.asarray(below, dtype=float)
    kept = denominators > 0
    ratios = (drawn @ np.asarray(above, dtype=float))[kept] / denominators[kept]
    outside = (1 - CONFIDENCE) / 2
    low, high = np.quantile(ratios, [outside, 1 - outside])
    return Interval(low=float(low), high=float(high))
