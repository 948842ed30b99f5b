"""Bootstrap intervals, and means and standard deviations over seeds."""

from collections.abc import Sequence
from statistics import fmean, stdev

import numpy as np
import numpy.typing as npt

from pieline.core.records import Frozen

CONFIDENCE = 0.95

Counts = npt.NDArray[np.int64]
Ratios = npt.NDArray[np.float64]


class Interval(Frozen):
    """95% percentile bootstrap interval; each metric defines the units that are resampled."""

    low: float
    high: float


class Spread(Frozen):
    """Mean and standard deviation (ddof 1) of a value over seeds; no deviation if `seeds` is 1."""

    mean: float
    deviation: float | None
    seeds: int


def spread(values: Sequence[float]) -> Spread:
    """Return the mean and standard deviation (ddof 1) of values, one per seed.

    Raises:
        StatisticsError: There are no values.
    """
    deviation = stdev(values) if len(values) > 1 else None
    return Spread(mean=fmean(values), deviation=deviation, seeds=len(values))


def ratio_interval(
    above: Sequence[float], below: Sequence[float], *, resamples: int, seed: int
) -> Interval | None:
    """Return the percentile bootstrap interval of sum(above) / sum(below) when units are resampled.

    `above` and `below` have one value per unit. For the cluster bootstrap interval of a mean, the
    units are clusters: `above` contains their sums, and `below` contains their sizes. Returns None
    if sum(below) is 0, or if there are fewer than two units.
    """
    if len(above) < 2 or not sum(below):
        return None
    single_stratum = [0] * len(above)
    drawn = draw_units(single_stratum, resamples=resamples, seed=seed)
    return percentile_interval(resampled_ratios(drawn, above, below))


def draw_units(strata: npt.ArrayLike, *, resamples: int, seed: int) -> Counts:
    """Return how often each bootstrap resample draws each unit, with shape (resamples, units).

    Resampling is stratified: each resample has as many units per stratum as the data.

    Args:
        strata: Stratum of each unit.
        resamples: Number of resamples.
        seed: Random seed.
    """
    stratum_of_unit = np.asarray(strata)
    generator = np.random.default_rng(seed)
    drawn = np.zeros((resamples, len(stratum_of_unit)), dtype=np.int64)
    for stratum in np.unique(stratum_of_unit):
        units = np.flatnonzero(stratum_of_unit == stratum)
        probabilities = np.full(len(units), 1 / len(units))
        drawn[:, units] = generator.multinomial(len(units), probabilities, size=resamples)
    return drawn


def resampled_ratios(drawn: Counts, above: npt.ArrayLike, below: npt.ArrayLike) -> Ratios:
    """Return sum(above) / sum(below) of the drawn units for each resample; NaN if sum(below) is 0.

    Args:
        drawn: How often each resample draws each unit (see `draw_units`).
        above: Value of each unit in the numerator.
        below: Value of each unit in the denominator.
    """
    numerators = drawn @ np.asarray(above, dtype=float)
    denominators = drawn @ np.asarray(below, dtype=float)
    ratios: Ratios = np.full(len(drawn), np.nan)
    np.divide(numerators, denominators, out=ratios, where=denominators > 0)
    return ratios


def percentile_interval(values: Ratios) -> Interval | None:
    """Return the 95% percentile interval of the values except NaN; None if all are NaN."""
    numbers = values[~np.isnan(values)]
    if not len(numbers):
        return None
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(numbers, [tail, 1 - tail])
    return Interval(low=float(low), high=float(high))
