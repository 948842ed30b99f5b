"""Negative drift (ID10M-JAM, section 4.1): what adversarial contexts do to right decisions.

Everything here is computed from one thing: of each original, whether the model was right about it
and about each of its hard variants.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, combinations
from statistics import fmean
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from pieline.core.records import Frozen
from pieline.core.significance import holm, randomization_test
from pieline.core.uncertainty import Interval, ratio_interval

K = TypeVar("K")
Counts = NDArray[np.float64]


class JudgedOriginal(Frozen):
    """Whether a model was right about an original and about its variants.

    Attributes:
        id: of the original.
        is_figurative: whether its PIE is used idiomatically.
        correct: whether the model was right about the original.
        variants: whether it was right about each variant, by its id.
    """

    id: str
    is_figurative: bool
    correct: bool
    variants: dict[str, bool]

    @property
    def flipped(self) -> dict[str, bool]:
        """Of each variant, by its id, whether a right decision became a wrong one."""
        return {name: self.correct and not right for name, right in self.variants.items()}


class Drift(Frozen):
    """S_M, F_M and ND_M of some originals.

    Attributes:
        originals, variants: how many there are.
        success: S_M, the variants whose original the model was right about.
        flipped: F_M, those of them that it was wrong about.
        negative_drift: ND_M = F_M / S_M (a fraction); null where S_M is 0, since nothing could
            drift. (Table 5 prints 0 there.)
        interval: of ND_M, over originals.
    """

    originals: int
    variants: int
    success: int
    flipped: int
    negative_drift: float | None
    interval: Interval | None = None


class Confusion(Frozen):
    """How many originals have all, none or some of their variants confusing (appendix F)."""

    all_confused: int
    none_confused: int
    mixed: int

    @property
    def total(self) -> int:
        """All that were counted."""
        return self.all_confused + self.none_confused + self.mixed


class DriftComparison(Frozen):
    """Two runs by their negative drift on the same originals.

    Attributes:
        difference: ND of the first minus that of the second (a fraction), each of the flips and
            successes of all its seeds together.
        p_value: two-sided, of the paired randomization test over originals.
        p_holm: corrected (Holm, 1979) for all pairs of runs that were compared with it.
    """

    difference: float
    p_value: float
    p_holm: float


def drift(judged: Iterable[JudgedOriginal], interval: Interval | None = None) -> Drift:
    """S_M, F_M and ND_M of some originals."""
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
    """Share of originals that the model was right about (section 5); None without originals."""
    right = [case.correct for case in judged]
    return fmean(right) if right else None


def confusion_as_printed(judged: Iterable[JudgedOriginal]) -> Confusion:
    """AC, NC and MX as Table 6 counts language models: over all originals, by wrong variants.

    The text has the three over originals that the model was right about, but the printed counts
    sum to all originals, and in 30 of 32 rows all-confused and mixed together need more flips than
    the F_M of Table 3 has (GPT-4o, English: at least 55 against 31). Every row agrees with
    counting wrong variants whatever the original: so this does.
    """
    return _confusion(
        [not right for right in case.variants.values()] for case in judged if case.variants
    )


def confusion_of_correct(judged: Iterable[JudgedOriginal]) -> Confusion:
    """AC, NC and MX as appendix F's text has them: originals that the model was right about."""
    cases = (case for case in judged if case.correct and case.variants)
    return _confusion(list(case.flipped.values()) for case in cases)


def confusion_of_variants(judged: Iterable[JudgedOriginal]) -> Confusion:
    """AC, NC and MX as Table 6 has them for encoders: F_M, S_M - F_M and nothing mixed."""
    total = drift(judged)
    return Confusion(
        all_confused=total.flipped, none_confused=total.success - total.flipped, mixed=0
    )


def _confusion(confused: Iterable[Sequence[bool]]) -> Confusion:
    kinds = [(all(variants), any(variants)) for variants in confused]
    return Confusion(
        all_confused=sum(every for every, _ in kinds),
        none_confused=sum(not some for _, some in kinds),
        mixed=sum(some and not every for every, some in kinds),
    )


def drift_interval(
    judged: Sequence[JudgedOriginal], *, resamples: int, seed: int
) -> Interval | None:
    """Bootstrap interval of ND_M: originals are drawn with their variants.

    Variants of one original are not independent, so drawing them one by one would be too narrow.
    None where no original was judged right; draws without a right one are left out.
    """
    success = [len(case.variants) if case.correct else 0 for case in judged]
    flipped = [sum(case.flipped.values()) for case in judged]
    return ratio_interval(flipped, success, resamples=resamples, seed=seed)


def accuracy_interval(
    judged: Sequence[JudgedOriginal], *, resamples: int, seed: int
) -> Interval | None:
    """Bootstrap interval of the accuracy on originals."""
    right = [int(case.correct) for case in judged]
    return ratio_interval(right, [1] * len(right), resamples=resamples, seed=seed)


def compare_drifts(
    runs: Mapping[K, Sequence[Sequence[JudgedOriginal]]], *, permutations: int, seed: int
) -> dict[tuple[K, K], DriftComparison]:
    """Test every two runs for equal negative drift on the same originals.

    The runs change places on whole originals, with all variants and seeds: variants of one
    original are hard together, so that McNemar's test, which takes them one by one, calls equal
    runs different far too often.

    Args:
        runs: the originals as judged with each seed, by run. Runs without any success have no drift
            and are left out.
        permutations: sign patterns at most (see `randomization_test`).
        seed: of the patterns; the same serve every pair.

    Raises:
        ValueError: runs of other originals.
    """
    parts = counts_by_original(runs, successes_and_flips)
    return compare_shares(parts, list(combinations(parts, 2)), permutations=permutations, seed=seed)


def compare_shares(
    parts: Mapping[K, Counts], pairs: Sequence[tuple[K, K]], *, permutations: int, seed: int
) -> dict[tuple[K, K], DriftComparison]:
    """Test pairs of runs for an equal share of what is counted in a base (see `compare_drifts`).

    Args:
        parts: base and counted of each original, shape (2, originals), by run. Pairs with a run
            whose base is empty are left out.
        pairs: of runs. The correction is for their number.
        permutations: sign patterns at most.
        seed: of the patterns.
    """
    pairs = [pair for pair in pairs if all(parts[key][0].any() for key in pair)]
    if not pairs:
        return {}
    shares = {key: parts[key][1].sum() / parts[key][0].sum() for key in chain(*pairs)}
    excess = np.array([excess_flips(parts[one], parts[other]) for one, other in pairs])
    found = randomization_test(excess, permutations=permutations, seed=seed, mid=True).tolist()
    return {
        (one, other): DriftComparison(
            difference=float(shares[one] - shares[other]), p_value=chance, p_holm=corrected
        )
        for (one, other), chance, corrected in zip(pairs, found, holm(found), strict=True)
    }


def excess_flips(first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
    """Flips of a run beyond those of another, on each original.

    What the drift of both together lets expect of their successes is taken off, so that the sum is
    zero where two runs drift equally, however many successes each has.

    Args:
        first: shape (2, originals): successes and flips.
        second: the same of the other run.
    """
    expected, flipped = (first + second).sum(axis=1)
    difference = first - second
    return np.asarray(difference[1] - difference[0] * flipped / expected)


def successes_and_flips(case: JudgedOriginal) -> tuple[int, int]:
    """S and F of one original: ND is the share of these in those."""
    return len(case.variants) * case.correct, sum(case.flipped.values())


def variants_and_errors(case: JudgedOriginal) -> tuple[int, int]:
    """Variants of one original, and those judged wrong, whatever the original."""
    return len(case.variants), sum(not right for right in case.variants.values())


def counts_by_original(
    runs: Mapping[K, Sequence[Sequence[JudgedOriginal]]],
    count: Callable[[JudgedOriginal], tuple[int, int]],
) -> dict[K, Counts]:
    """Base and counted of each original as means over seeds, shape (2, originals), by run.

    Raises:
        ValueError: runs of other originals.
    """
    counts: dict[K, dict[str, tuple[float, float]]] = {}
    for key, seeds in runs.items():
        found = counts[key] = {}
        for case in sorted(chain.from_iterable(seeds), key=lambda case: case.id):
            base, counted = found.get(case.id, (0.0, 0.0))
            more, of_it = count(case)
            found[case.id] = base + more / len(seeds), counted + of_it / len(seeds)
    if len({tuple(found) for found in counts.values()}) > 1:
        raise ValueError("the runs are not of the same originals")
    return {key: np.array(list(found.values())).T for key, found in counts.items()}
