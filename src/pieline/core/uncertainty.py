"""How far a number would move with other data or another seed: intervals and deviations."""

from collections.abc import Sequence
from statistics import fmean, stdev

import numpy as np
import numpy.typing as npt

from pieline.core.records import Frozen

CONFIDENCE = 0.95

Counts = npt.NDArray[np.int64]
Ratios = npt.NDArray[np.float64]


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
    there is one unit, which cannot tell how others differ.
    """
    if len(above) < 2 or not sum(below):
        return None
    drawn = draw_units([0] * len(above), resamples=resamples, seed=seed)
    return percentile_interval(drawn_ratios(drawn, above, below))


def draw_units(strata: npt.ArrayLike, *, resamples: int, seed: int) -> Counts:
    """How often each unit is drawn in each resample of the bootstrap, shape (resamples, units).

    Units are drawn within their stratum, so every resample has as many of each as the data.
    """
    of_unit = np.asarray(strata)
    generator = np.random.default_rng(seed)
    drawn = np.zeros((resamples, len(of_unit)), dtype=np.int64)
    for stratum in np.unique(of_unit):
        members = np.flatnonzero(of_unit == stratum)
        shares = np.full(len(members), 1 / len(members))
        drawn[:, members] = generator.multinomial(len(members), shares, size=resamples)
    return drawn


def drawn_ratios(drawn: Counts, above: npt.ArrayLike, below: npt.ArrayLike) -> Ratios:
    """sum(above) / sum(below) in each resample, NaN where the denominator is 0."""
    numerators = drawn @ np.asarray(above, dtype=float)
    denominators = drawn @ np.asarray(below, dtype=float)
    ratios: Ratios = np.full(len(drawn), np.nan)
    np.divide(numerators, denominators, out=ratios, where=denominators > 0)
    return ratios


def percentile_interval(values: Ratios) -> Interval | None:
    """The interval of a statistic by its resamples without those that are NaN; None if all are."""
    known = values[~np.isnan(values)]
    if not len(known):
        return None
    outside = (1 - CONFIDENCE) / 2
    low, high = np.quantile(known, [outside, 1 - outside])
    return Interval(low=float(low), high=float(high))
