"""When a mean or a deviation over seeds counts as reproduced: what as many seeds explain.

The paper drew its seeds as we draw ours, so each printed number is an estimate, too. Both ranges
are 95 % intervals of two normal samples, and rounding widens them by half of the last printed
decimal:

- a mean within Welch's t interval for the difference of two means. From one seed of ours it is the
  prediction interval of a single value, t(n - 1) * s * sqrt(1 + 1 / n), where s is the printed
  deviation of n seeds;
- a deviation within the F interval for the ratio of two variances. With three seeds on both sides
  it reaches from s / 6.2 to 6.2 * s. Chi-square would take the printed deviation for the true one,
  and call 24 % of the runs different that differ in nothing but their three seeds.

A paper may not say whether its deviations divide by n - 1 (ddof 1, as ours) or by n (ddof 0); each
is a reading of the printed number, and one that holds suffices.
"""

import math
from collections.abc import Sequence

from scipy.stats import f, t

from pieline.core.uncertainty import CONFIDENCE, Spread

Ranges = dict[str, tuple[float, float]]
"""In which range ours counts as reproduced, by reading of the printed number."""

_TAIL = (1 - CONFIDENCE) / 2


def mean_ranges(
    ours: Spread, printed: Spread, *, ddof: Sequence[int] = (1,), decimals: int = 2
) -> Ranges:
    """Where our mean counts as reproduced.

    Args:
        ours: mean and deviation (ddof 1) over our seeds.
        printed: what the paper prints over its seeds, of which there are more than one.
        ddof: what the printed deviation may divide by.
        decimals: of the printed numbers.
    """
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
        half = float(t.ppf(1 - _TAIL, degrees)) * math.sqrt(own + theirs) + _rounding(decimals)
        found[_reading(chosen)] = (printed.mean - half, printed.mean + half)
    return found


def deviation_ranges(
    seeds: int, printed: Spread, *, ddof: Sequence[int] = (1,), decimals: int = 2
) -> Ranges:
    """Where our deviation over so many seeds, more than one, counts as reproduced.

    For the other arguments see `mean_ranges`.
    """
    ratios = [float(f.ppf(tail, seeds - 1, printed.seeds - 1)) for tail in (_TAIL, 1 - _TAIL)]
    rounding = _rounding(decimals)
    found = {}
    for chosen in ddof:
        low, high = (
            math.sqrt(ratio * _variance(printed, chosen, rounded=by))
            for ratio, by in zip(ratios, (-rounding, rounding), strict=True)
        )
        found[_reading(chosen)] = (low, high)
    return found


def _variance(printed: Spread, ddof: int, *, rounded: float = 0.0) -> float:
    """The printed variance as it is with ddof 1, the deviation moved by its rounding."""
    deviation = max(0.0, (printed.deviation or 0.0) + rounded)
    return deviation**2 * (printed.seeds - ddof) / (printed.seeds - 1)


def _rounding(decimals: int) -> float:
    return 0.5 * 10.0**-decimals


def _reading(ddof: int) -> str:
    return f"printed with ddof {ddof}"
