"""Cohen's kappa, the paired randomization test and Holm's correction for multiple comparisons."""

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

_PATTERNS_AT_ONCE = 500


def sign_patterns(units: int, permutations: int) -> int:
    """Return the number of sign patterns that a test with this many units evaluates."""
    return min(permutations, 1 << units)


def cohen_kappa(first: Sequence[Hashable], second: Sequence[Hashable]) -> float | None:
    """Return Cohen's kappa of two raters, or None if all their labels are the same."""
    from sklearn.metrics import cohen_kappa_score

    return float(cohen_kappa_score(first, second)) if len({*first, *second}) > 1 else None


def randomization_test(
    differences: NDArray[np.float64], *, permutations: int, seed: int, mid: bool = False
) -> NDArray[np.float64]:
    """Return two-sided p-values of paired differences under random sign flips.

    One sign is flipped per unit. For clustered measurements, each cluster is a unit, and its
    difference is the sum over the cluster. If the number of sign patterns of n units, 2^n, is at
    most `permutations`, all patterns are evaluated. Otherwise, `permutations` patterns are sampled
    and the observed pattern is added, so no p-value is zero. With fewer than two units, all
    p-values are 1.

    Args:
        differences: Array of shape (comparisons, units).
        permutations: Maximum number of sign patterns.
        seed: Random seed of the sampled patterns.
        mid: Whether to compute mid-p-values: a pattern whose absolute sum equals the observed one
            counts as half a pattern. If differences take few values, many sums are equal, and
            counting their patterns fully makes the test too conservative.

    Returns:
        Array of shape (comparisons,).
    """
    if differences.shape[1] < 2:
        # scipy rejects a single unit, whose two patterns give equally large sums.
        return np.ones(len(differences))
    from scipy.stats import permutation_test

    result = permutation_test(
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
    chances = np.asarray(result.pvalue)
    if mid:
        patterns = len(result.null_distribution)
        ties = (result.null_distribution == _size_of_sum(differences, axis=1)).sum(axis=0)
        if patterns < 1 << differences.shape[1]:
            patterns, ties = patterns + 1, ties + 1
        chances = chances - ties / 2 / patterns
    return chances


def _size_of_sum(differences: NDArray[np.float64], axis: int) -> NDArray[np.float64]:
    """Return absolute sums, rounded so that the order of addition does not break ties."""
    sizes: NDArray[np.float64] = np.abs(differences.sum(axis=axis)).round(9)
    return sizes


def holm(chances: Sequence[float]) -> list[float]:
    """Return the p-values corrected by Holm's step-down procedure, in the original order."""
    corrected = [0.0] * len(chances)
    largest = 0.0
    for rank, place in enumerate(sorted(range(len(chances)), key=lambda place: chances[place])):
        largest = max(largest, min(1.0, (len(chances) - rank) * chances[place]))
        corrected[place] = largest
    return corrected
