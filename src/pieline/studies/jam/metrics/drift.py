"""Compute negative drift (ID10M-JAM, section 4.1): correct decisions that context reverses.

All metrics are computed from whether the model was right about each original and each of its hard
variants.
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
    """Correctness of a model on an original and its variants.

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
        """Return whether each variant turned a correct decision into a wrong one, by variant id."""
        return {name: self.correct and not right for name, right in self.variants.items()}


class Drift(Frozen):
    """S_M, F_M and ND_M of a set of originals.

    Attributes:
        originals: Number of originals.
        variants: Number of variants.
        success: S_M, the number of variants whose original was judged correctly.
        flipped: F_M, the number of variants counted by S_M that were misjudged.
        negative_drift: ND_M = F_M / S_M (fraction); null if S_M is 0, because nothing could drift
            (Table 5 prints 0 in this case).
        interval: 95% bootstrap interval of ND_M over originals; null if it is undefined.
    """

    originals: int
    variants: int
    success: int
    flipped: int
    negative_drift: float | None
    interval: Interval | None = None


class Confusion(Frozen):
    """Numbers of originals of which all, no or only some variants confuse a model (appendix F)."""

    all_confused: int
    none_confused: int
    mixed: int


class DriftComparison(Frozen):
    """Comparison of two runs by negative drift on the same originals.

    Attributes:
        difference: ND of the first minus ND of the second run (fraction), each computed over all
            its seeds.
        p_value: Two-sided p-value of the paired randomization test over originals.
        p_holm: P-value corrected for all compared pairs (Holm, 1979).
    """

    difference: float
    p_value: float
    p_holm: float


DIFFERENCE = Measure[DriftComparison](
    "negative_drift_difference", lambda test: 100 * test.difference, unit="points"
)


def drift(judged: Iterable[JudgedOriginal], interval: Interval | None = None) -> Drift:
    """Compute S_M, F_M and ND_M; `interval` is stored as the interval of ND_M."""
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
    """Return the share of correctly judged originals (section 5); None without originals."""
    right = [case.correct for case in judged]
    return fmean(right) if right else None


def confusion_as_printed(judged: Iterable[JudgedOriginal]) -> Confusion:
    """Compute AC, NC and MX over all originals, as in Table 6 for language models.

    According to the text, these numbers cover only correctly judged originals. However, the printed
    counts sum to all originals, and in 30 of 32 rows AC and MX together require more flips than F_M
    in Table 3 (GPT-4o, English: at least 55 against 31). Every row is consistent with counting
    misjudged variants regardless of whether the original was misjudged, as done here.
    """
    return _confusion(
        [not right for right in case.variants.values()] for case in judged if case.variants
    )


def confusion_of_correct(judged: Iterable[JudgedOriginal]) -> Confusion:
    """Compute AC, NC and MX over correctly judged originals, as in the text of appendix F."""
    cases = (case for case in judged if case.correct and case.variants)
    return _confusion(list(case.flipped.values()) for case in cases)


def confusion_of_variants(judged: Iterable[JudgedOriginal]) -> Confusion:
    """Compute AC, NC and MX as in Table 6 for encoders: F_M, S_M - F_M and 0."""
    total = drift(judged)
    return Confusion(
        all_confused=total.flipped, none_confused=total.success - total.flipped, mixed=0
    )


def _confusion(confused: Iterable[Sequence[bool]]) -> Confusion:
    """Count the originals of which all, none or some variants confuse the model."""
    kinds = [(all(variants), any(variants)) for variants in confused]
    return Confusion(
        all_confused=sum(every for every, _ in kinds),
        none_confused=sum(not some for _, some in kinds),
        mixed=sum(some and not every for every, some in kinds),
    )


def drift_interval(
    judged: Sequence[JudgedOriginal], *, resamples: int, seed: int
) -> Interval | None:
    """Return the 95% bootstrap interval of ND_M, resampling originals with their variants.

    Variants of one original are dependent, so resampling single variants would give too narrow an
    interval. Returns None for fewer than two originals, or if S_M is 0; resamples in which S_M is 0
    are ignored.
    """
    success = [len(case.variants) if case.correct else 0 for case in judged]
    flipped = [sum(case.flipped.values()) for case in judged]
    return ratio_interval(flipped, success, resamples=resamples, seed=seed)


def accuracy_interval(
    judged: Sequence[JudgedOriginal], *, resamples: int, seed: int
) -> Interval | None:
    """Return the 95% bootstrap interval of the accuracy; None for fewer than two originals."""
    right = [int(case.correct) for case in judged]
    return ratio_interval(right, [1] * len(right), resamples=resamples, seed=seed)


def compare_drifts(
    runs: Mapping[K, Sequence[Sequence[JudgedOriginal]]], *, permutations: int, seed: int
) -> dict[tuple[K, K], DriftComparison]:
    """Test every pair of runs for equal negative drift on the same originals.

    The test swaps the two runs' decisions on an original, all its variants and all seeds together.
    Variants of one original are correlated in difficulty, so McNemar's test, which treats them as
    independent, would reject far too often.

    Args:
        runs: Judged originals per seed, by run. Runs without any success have no drift and are
            excluded.
        permutations: Maximum number of sign patterns (see `randomization_test`).
        seed: Seed of the patterns, which are shared by all pairs.

    Raises:
        ValueError: The runs have different originals.
    """
    parts = counts_by_original(runs, successes_and_flips)
    return compare_shares(parts, list(combinations(parts, 2)), permutations=permutations, seed=seed)


def compare_shares(
    parts: Mapping[K, Counts], pairs: Sequence[tuple[K, K]], *, permutations: int, seed: int
) -> dict[tuple[K, K], DriftComparison]:
    """Test pairs of runs for equal ratios (see `compare_drifts`).

    Args:
        parts: Denominator and numerator of each original, shape (2, originals), by run. Pairs are
            excluded if the total denominator of either run is 0.
        pairs: Pairs of runs. P-values are corrected for the number of pairs.
        permutations: Maximum number of sign patterns.
        seed: Seed of the patterns.
    """
    pairs = [pair for pair in pairs if all(parts[key][0].any() for key in pair)]
    if not pairs:
        return {}
    shares = {key: parts[key][1].sum() / parts[key][0].sum() for key in chain(*pairs)}
    excess = np.array([excess_flips(parts[one], parts[other]) for one, other in pairs])
    p_values = randomization_test(excess, permutations=permutations, seed=seed, mid=True).tolist()
    return {
        (one, other): DriftComparison(
            difference=float(shares[one] - shares[other]), p_value=p_value, p_holm=corrected
        )
        for (one, other), p_value, corrected in zip(pairs, p_values, holm(p_values), strict=True)
    }


def excess_flips(first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the excess of one run's flips over another's, for each original.

    The flips expected from the pooled drift are subtracted, so that the sum over originals is zero
    for runs with equal drift, regardless of their numbers of successes.

    Args:
        first: Successes and flips of one run, shape (2, originals).
        second: Successes and flips of the other run.
    """
    expected, flipped = (first + second).sum(axis=1)
    difference = first - second
    return np.asarray(difference[1] - difference[0] * flipped / expected)


def successes_and_flips(case: JudgedOriginal) -> tuple[int, int]:
    """Return S and F of one original; ND is the sum of F divided by the sum of S."""
    return len(case.variants) * case.correct, sum(case.flipped.values())


def counts_by_original(
    runs: Mapping[K, Sequence[Sequence[JudgedOriginal]]],
    count: Callable[[JudgedOriginal], tuple[int, int]],
) -> dict[K, Counts]:
    """Return the denominator and numerator of each original, averaged over seeds, by run.

    Each array has shape (2, originals), with originals sorted by id. `count` returns the
    denominator and numerator of an original in one seed.

    Raises:
        ValueError: The runs have different originals.
    """
    counts: dict[K, dict[str, tuple[float, float]]] = {}
    for key, seeds in runs.items():
        totals = counts[key] = {}
        for case in sorted(chain.from_iterable(seeds), key=lambda case: case.id):
            denominator, numerator = totals.get(case.id, (0.0, 0.0))
            more_denominator, more_numerator = count(case)
            totals[case.id] = (
                denominator + more_denominator / len(seeds),
                numerator + more_numerator / len(seeds),
            )
    if len({tuple(totals) for totals in counts.values()}) > 1:
        raise ValueError("the runs have different originals")
    return {key: np.array(list(totals.values())).T for key, totals in counts.items()}
