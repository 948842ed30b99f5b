"""Two things on the same units: do they differ (a paired randomization test), do they agree?"""

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

_PATTERNS_AT_ONCE = 500


def sign_patterns(units: int, permutations: int) -> int:
    """How many sign patterns a test of so many units goes through."""
    return min(permutations, 1 << units)


def cohen_kappa(first: Sequence[Hashable], second: Sequence[Hashable]) -> float | None:
    """Cohen's kappa of two raters; None where both gave one and the same label throughout."""
    from sklearn.metrics import cohen_kappa_score

    return float(cohen_kappa_score(first, second)) if len({*first, *second}) > 1 else None


def randomisation_test(
    differences: NDArray[np.float64], *, permutations: int, seed: int, mid: bool = False
) -> NDArray[np.float64]:
    """Two-sided p-values of paired differences: how often do other signs give as large a sum?

    A unit keeps or changes its sign as a whole: where measurements cluster it is the cluster, with
    the sum of their differences. All 2^n patterns of n units are gone through where they are no
    more than `permutations`; else that many are drawn, and the observed signs count as one more, so
    that no p-value is zero.

    Args:
        differences: shape (comparisons, units).
        permutations: sign patterns at most.
        seed: of the patterns.
        mid: count patterns with a sum equally large by half (mid-p). Where differences take few
            values, most patterns tie with others, and the whole count rejects too seldom.

    Returns:
        Shape (comparisons,).
    """
    if differences.shape[1] < 2:
        # scipy refuses a single unit; both of its patterns give as large a sum.
        return np.ones(len(differences))
    from scipy.stats import permutation_test

    found = permutation_test(
        (differences,),
        _size_of_sum,
        permutation_type="samples",
        vectorized=True,
        axis=1,
        n_resamples=permutations,
        batch=_PATTERNS_AT_ONCE,
        alternative="greater",
        rng=seed,
    )
    chances = np.asarray(found.pvalue)
    if mid:
        drawn = len(found.null_distribution)
        ties = (found.null_distribution == _size_of_sum(differences, axis=1)).sum(axis=0)
        if drawn < 1 << differences.shape[1]:
            drawn, ties = drawn + 1, ties + 1
        chances = chances - ties / 2 / drawn
    return chances


def _size_of_sum(differences: NDArray[np.float64], axis: int) -> NDArray[np.float64]:
    """Rounded, since equal sums whose terms were added in another order must compare as equal."""
    sizes: NDArray[np.float64] = np.abs(differences.sum(axis=axis)).round(9)
    return sizes


def holm(chances: Sequence[float]) -> list[float]:
    """P-values corrected for their number by Holm's step-down procedure, in the given order."""
    corrected = [0.0] * len(chances)
    largest = 0.0
    for rank, place in enumerate(sorted(range(len(chances)), key=lambda place: chances[place])):
        largest = max(largest, min(1.0, (len(chances) - rank) * chances[place]))
        corrected[place] = largest
    return corrected
