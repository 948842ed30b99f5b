"""Compute negative drift (ID10M-JAM, section 4.1): how often context reverses right decisions.

All metrics depend only on whether the model was right about each original and each hard variant.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, combinations
from statistics import fmean
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from pieline.core.measures import Measure
from pieline.core.records import Frozen
from pieline.core.significance import holm, randomization_test
from pieline.core.uncertainty import Interval, ratio_interval

K = TypeVar("K")
Counts = NDArray[np.float64]


class JudgedOriginal(Frozen):
    """Whether a model was right about an original and about each of its variants.

    Attributes:
        id: Original id.
        is_figurative: Whether the PIE is used idiomatically.
        correct: Whether the model was right about the original.
        variants: Whether the model was right about each variant, by variant id.
    """

    id: str
    is_figurative: bool
    correct: bool
    variants: dict[str, bool]

    @property
    def flipped(self) -> dict[str, bool]:
        """Return whether each variant flipped the model's decision, by variant id.

        A variant flips the decision if the model was right about the original, but wrong about the
        variant.
        """
        return {
            variant_id: self.correct and not is_right
            for variant_id, is_right in self.variants.items()
        }


class Drift(Frozen):
    """Successes (S_M), flips (F_M) and negative drift (ND_M) of a set of originals.

    Attributes:
        originals: Number of originals.
        variants: Number of variants.
        success: S_M, the number of variants whose original was judged correctly.
        flipped: F_M, the number of misjudged variants whose original was judged correctly.
        negative_drift: ND_M = F_M / S_M (fraction). It is null if S_M is 0, because then no variant
            could drift; the paper's Table 5 prints 0 instead.
        interval: 95% bootstrap interval of ND_M over originals; null if the interval is undefined.
    """

    originals: int
    variants: int
    success: int
    flipped: int
    negative_drift: float | None
    interval: Interval | None = None


class Confusion(Frozen):
    """Numbers of originals of which all, no or some variants confuse a model (appendix F).

    Attributes:
        all_confused: AC, the number of originals all of whose variants confuse the model.
        none_confused: NC, the number of originals without a variant that confuses the model.
        mixed: MX, the number of other originals.
    """

    all_confused: int
    none_confused: int
    mixed: int


class DriftComparison(Frozen):
    """Comparison of two runs by negative drift on the same originals.

    Attributes:
        difference: ND of the first run minus ND of the second run (fraction). Each ND is computed
            over all seeds of the run.
        p_value: Two-sided p-value of the paired randomization test over originals.
        p_holm: P-value corrected for the number of compared pairs (Holm, 1979).
    """

    difference: float
    p_value: float
    p_holm: float


DIFFERENCE = Measure[DriftComparison](
    "negative_drift_difference", lambda test: 100 * test.difference, unit="points"
)


def drift(judged: Iterable[JudgedOriginal], interval: Interval | None = None) -> Drift:
    """Compute S_M, F_M and ND_M of originals; `interval` (of ND_M) is stored in the result."""
    cases = list(judged)
    success = sum(len(case.variants) for case in cases if case.correct)
    flipped = sum(sum(case.flipped.values()) for case in cases)
    return Drift(
        originals=len(cases),
        variants=sum(len(case.variants) for case in cases),
        success=success,
        flipped=flipped,
        negative_drift=flipped / success if success else None,
        interval=interval,
    )


def accuracy(judged: Iterable[JudgedOriginal]) -> float | None:
    """Return the fraction of originals judged correctly (section 5); None without originals."""
    decisions = [case.correct for case in judged]
    return fmean(decisions) if decisions else None


def confusion_as_printed(judged: Iterable[JudgedOriginal]) -> Confusion:
    """Compute AC, NC and MX over all originals, as in Table 6 for language models.

    According to the paper's text, AC, NC and MX cover only correctly judged originals. However, the
    printed counts sum to all originals, and in 30 of 32 rows AC and MX together require more flips
    than F_M in Table 3 (GPT-4o, English: at least 55 against 31). This function therefore counts
    misjudged variants even if the original was misjudged, which is consistent with every row.
    """
    return _confusion(
        [not is_right for is_right in case.variants.values()] for case in judged if case.variants
    )


def confusion_of_correct(judged: Iterable[JudgedOriginal]) -> Confusion:
    """Compute AC, NC and MX over correctly judged originals, as defined in appendix F's text."""
    return _confusion(
        list(case.flipped.values()) for case in judged if case.correct and case.variants
    )


def confusion_of_variants(judged: Iterable[JudgedOriginal]) -> Confusion:
    """Compute AC (F_M), NC (S_M - F_M) and MX (0) over variants, as in Table 6 for encoders."""
    total = drift(judged)
    return Confusion(
        all_confused=total.flipped, none_confused=total.success - total.flipped, mixed=0
    )


def _confusion(is_confusing_by_original: Iterable[Sequence[bool]]) -> Confusion:
    """Compute AC, NC and MX from whether each variant of each original confuses the model.

    Every original must have a variant.
    """
    all_confused = none_confused = mixed = 0
    for is_confusing in is_confusing_by_original:
        if all(is_confusing):
            all_confused += 1
        elif any(is_confusing):
            mixed += 1
        else:
            none_confused += 1
    return Confusion(all_confused=all_confused, none_confused=none_confused, mixed=mixed)


def drift_interval(
    judged: Sequence[JudgedOriginal], *, resamples: int, seed: int
) -> Interval | None:
    """Return the 95% bootstrap interval of ND_M, resampling originals with their variants.

    Because the variants of an original are dependent, resampling single variants would make the
    interval too narrow. Resamples in which S_M is 0 are ignored. Returns None if there are fewer
    than two originals, or if S_M is 0.
    """
    success = [len(case.variants) if case.correct else 0 for case in judged]
    flipped = [sum(case.flipped.values()) for case in judged]
    return ratio_interval(flipped, success, resamples=resamples, seed=seed)


def accuracy_interval(
    judged: Sequence[JudgedOriginal], *, resamples: int, seed: int
) -> Interval | None:
    """Return the 95% bootstrap interval of the accuracy; None for fewer than two originals."""
    correct = [int(case.correct) for case in judged]
    return ratio_interval(correct, [1] * len(correct), resamples=resamples, seed=seed)


def compare_drifts(
    runs: Mapping[K, Sequence[Sequence[JudgedOriginal]]], *, permutations: int, seed: int
) -> dict[tuple[K, K], DriftComparison]:
    """Test every pair of runs for equal negative drift on the same originals.

    The test swaps the decisions of two runs on an original together with the decisions on all its
    variants, in all seeds. McNemar's test would reject far too often, because it treats variants as
    independent, although variants of one original are similarly difficult.

    Args:
        runs: Judged originals of each seed, by run. Runs without any success are excluded, because
            their drift is undefined.
        permutations: Maximum number of sign patterns (see `randomization_test`).
        seed: Seed of the patterns, which are shared by all pairs.

    Returns:
        The comparison of each tested pair, by pair.

    Raises:
        ValueError: The runs have different originals.
    """
    counts = counts_by_original(runs, successes_and_flips)
    pairs = list(combinations(counts, 2))
    return compare_shares(counts, pairs, permutations=permutations, seed=seed)


def compare_shares(
    counts: Mapping[K, Counts], pairs: Sequence[tuple[K, K]], *, permutations: int, seed: int
) -> dict[tuple[K, K], DriftComparison]:
    """Test pairs of runs for equal shares (see `compare_drifts`).

    The share of a run is its total numerator divided by its total denominator. A pair is excluded
    if the total denominator of one of its runs is 0.

    Args:
        counts: Denominator and numerator of each original, shape (2, originals), by run.
        pairs: Pairs of runs. P-values are corrected for the number of pairs.
        permutations: Maximum number of sign patterns (see `randomization_test`).
        seed: Seed of the patterns.

    Returns:
        The comparison of each tested pair, by pair.
    """
    shares: dict[K, float] = {}
    for run, (denominators, numerators) in counts.items():
        if denominators.any():
            shares[run] = float(numerators.sum() / denominators.sum())
    pairs = [(first, second) for first, second in pairs if first in shares and second in shares]
    if not pairs:
        return {}
    excess = np.array([excess_flips(counts[first], counts[second]) for first, second in pairs])
    p_values = randomization_test(excess, permutations=permutations, seed=seed, mid=True).tolist()
    comparisons = {}
    for (first, second), p_value, p_holm in zip(pairs, p_values, holm(p_values), strict=True):
        comparisons[first, second] = DriftComparison(
            difference=shares[first] - shares[second], p_value=p_value, p_holm=p_holm
        )
    return comparisons


def excess_flips(first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how many more flips the first run has on each original than the second run.

    A run with more successes is expected to have more flips. The flips expected from the pooled
    drift of both runs are subtracted, so that the sum over originals is zero if the runs have equal
    drift.

    Args:
        first: Successes and flips of the first run, shape (2, originals).
        second: Successes and flips of the second run, shape (2, originals).
    """
    pooled_successes, pooled_flips = (first + second).sum(axis=1)
    more_successes, more_flips = first - second
    return np.asarray(more_flips - more_successes * pooled_flips / pooled_successes)


def successes_and_flips(case: JudgedOriginal) -> tuple[int, int]:
    """Return the numbers of successes (S) and flips (F) among the variants of one original."""
    successes = len(case.variants) if case.correct else 0
    return successes, sum(case.flipped.values())


def counts_by_original(
    runs: Mapping[K, Sequence[Sequence[JudgedOriginal]]],
    count: Callable[[JudgedOriginal], tuple[int, int]],
) -> dict[K, Counts]:
    """Return the mean over seeds of each original's denominator and numerator, by run.

    Each array has shape (2, originals); the originals are sorted by id.

    Args:
        runs: Judged originals of each seed, by run.
        count: Function that returns the denominator and numerator of an original in one seed.

    Raises:
        ValueError: The runs have different originals.
    """
    counts: dict[K, Counts] = {}
    distinct_sets_of_ids: set[tuple[str, ...]] = set()
    for run, seeds in runs.items():
        means: dict[str, tuple[float, float]] = {}
        for case in sorted(chain.from_iterable(seeds), key=lambda case: case.id):
            # The sums over the seeds so far, divided by the number of all seeds.
            partial_denominator, partial_numerator = means.get(case.id, (0.0, 0.0))
            denominator, numerator = count(case)
            means[case.id] = (
                partial_denominator + denominator / len(seeds),
                partial_numerator + numerator / len(seeds),
            )
        counts[run] = np.array(list(means.values()), dtype=float).reshape(-1, 2).T
        distinct_sets_of_ids.add(tuple(means))
    if len(distinct_sets_of_ids) > 1:
        raise ValueError("the runs have different originals")
    return counts
