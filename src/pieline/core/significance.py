"""Cohen's kappa, the paired randomization test and Holm's correction for multiple comparisons."""

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

_PATTERNS_AT_ONCE = 500
"""Number of sign patterns that are held in memory together."""


def sign_patterns(units: int, permutations: int) -> int:
    """Return the number of sign patterns that a randomization test of `units` units evaluates."""
    return min(permutations, 1 << units)


def cohen_kappa(first: Sequence[Hashable], second: Sequence[Hashable]) -> float | None:
    """Return Cohen's kappa between the labels of two raters; None if all labels are equal."""
    from sklearn.metrics import cohen_kappa_score

    if len({*first, *second}) < 2:
        return None
    return float(cohen_kappa_score(first, second))


def randomization_test(
    differences: NDArray[np.float64], *, permutations: int, seed: int, mid: bool = False
) -> NDArray[np.float64]:
    """Return two-sided p-values of paired differences under random sign flips.

    The sign of each unit is flipped independently. For clustered measurements, each cluster is a
    unit, and the difference of a unit is the sum over the cluster. If the number of sign patterns
    of n units, 2^n, is at most `permutations`, all patterns are evaluated. Otherwise,
    `permutations` patterns are sampled and the observed pattern is added, so that no p-value is
    zero. With fewer than two units, all p-values are 1.

    Args:
        differences: Array of shape (comparisons, units).
        permutations: Maximum number of sign patterns.
        seed: Random seed of the sampled patterns.
        mid: Whether to compute mid-p-values: a pattern whose absolute sum equals the observed
            absolute sum counts as half a pattern. If the differences take few values, many sums are
            equal, and the test would be too conservative if these patterns counted fully.

    Returns:
        p-values, with shape (comparisons,).
    """
    if differences.shape[1] < 2:
        # scipy rejects a single unit, whose two patterns give equally large sums.
        return np.ones(len(differences))
    from scipy.stats import permutation_test

    result = permutation_test(
        (differences,),
        _absolute_sum,
        permutation_type="samples",
        vectorized=True,
        axis=1,
        n_resamples=permutations,
        batch=_PATTERNS_AT_ONCE,
        alternative="greater",
        rng=seed,
    )
    p_values = np.asarray(result.pvalue)
    if mid:
        patterns = len(result.null_distribution)
        observed = _absolute_sum(differences, axis=1)
        ties = (result.null_distribution == observed).sum(axis=0)
        patterns_were_sampled = patterns < 2 ** differences.shape[1]
        if patterns_were_sampled:  # scipy adds the observed pattern, which is a tie
            patterns, ties = patterns + 1, ties + 1
        p_values = p_values - ties / 2 / patterns
    return p_values


def _absolute_sum(differences: NDArray[np.float64], axis: int) -> NDArray[np.float64]:
    """Return the absolute sums of differences along an axis.

    Sums are rounded, so that equal sums stay equal in any order of addition.
    """
    sums: NDArray[np.float64] = np.abs(differences.sum(axis=axis)).round(9)
    return sums


def holm(p_values: Sequence[float]) -> list[float]:
    """Return the p-values corrected by Holm's step-down procedure, in the original order."""
    corrected = [0.0] * len(p_values)
    largest_so_far = 0.0
    indices_from_smallest = sorted(range(len(p_values)), key=lambda index: p_values[index])
    for rank, index in enumerate(indices_from_smallest):
        remaining_tests = len(p_values) - rank
        adjusted = min(1.0, remaining_tests * p_values[index])
        largest_so_far = max(largest_so_far, adjusted)
        corrected[index] = largest_so_far
    return corrected
