"""Negative drift (ID10M-JAM, section 4.1): what adversarial contexts do to right decisions.

Everything here is computed from one thing: of each original, whether the model was right about it
and about each of its hard variants.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from scipy.stats import binomtest

from pieline.core.records import Frozen
from pieline.core.uncertainty import Interval, ratio_interval


@dataclass(frozen=True)
class Judgement:
    """Whether a model was right about an original and about its variants.

    Attributes:
        original_id: the original.
        is_figurative: whether its PIE is used idiomatically.
        correct: whether the model was right about the original.
        variants: whether it was right about each variant, in their order.
    """

    original_id: str
    is_figurative: bool
    correct: bool
    variants: tuple[bool, ...]

    @property
    def flipped(self) -> tuple[bool, ...]:
        """Of each variant, whether a right decision became a wrong one."""
        return tuple(self.correct and not right for right in self.variants)


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


class PairedTest(Frozen):
    """McNemar's exact test of two models on the same variants.

    Attributes:
        variants: judged by both.
        only_first, only_second: those that only one of the two was right about.
        p_value: two-sided; 1 where they differ on none.
    """

    variants: int
    only_first: int
    only_second: int
    p_value: float


def drift(judgements: Iterable[Judgement], interval: Interval | None = None) -> Drift:
    """S_M, F_M and ND_M of some originals."""
    cases = list(judgements)
    success = sum(len(case.variants) for case in cases if case.correct)
    flipped = sum(sum(case.flipped) for case in cases)
    return Drift(
        originals=len(cases),
        variants=sum(len(case.variants) for case in cases),
        success=success,
        flipped=flipped,
        negative_drift=flipped / success if success else None,
        interval=interval,
    )


def accuracy(judgements: Iterable[Judgement]) -> float | None:
    """Share of originals that the model was right about (section 5); None without originals."""
    right = [case.correct for case in judgements]
    return fmean(right) if right else None


def confusion_as_printed(judgements: Iterable[Judgement]) -> Confusion:
    """AC, NC and MX as Table 6 counts language models: over all originals, by wrong variants.

    The text has the three over originals that the model was right about, but the printed counts
    sum to all originals, and in 30 of 32 rows all-confused and mixed together need more flips than
    the F_M of Table 3 has (GPT-4o, English: at least 55 against 31). Every row agrees with
    counting wrong variants whatever the original: so this does.
    """
    return _confusion(
        [not right for right in case.variants] for case in judgements if case.variants
    )


def confusion_of_correct(judgements: Iterable[Judgement]) -> Confusion:
    """AC, NC and MX as appendix F's text has them: originals that the model was right about."""
    return _confusion(case.flipped for case in judgements if case.correct and case.variants)


def confusion_of_variants(judgements: Iterable[Judgement]) -> Confusion:
    """AC, NC and MX as Table 6 has them for encoders: F_M, S_M - F_M and nothing mixed."""
    total = drift(judgements)
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
    judgements: Sequence[Judgement], *, resamples: int, seed: int
) -> Interval | None:
    """Bootstrap interval of ND_M: originals are drawn with their variants.

    Variants of one original are not independent, so drawing them one by one would be too narrow.
    None where no original was judged right; draws without a right one are left out.
    """
    success = [len(case.variants) if case.correct else 0 for case in judgements]
    flipped = [sum(case.flipped) for case in judgements]
    return ratio_interval(flipped, success, resamples=resamples, seed=seed)


def accuracy_interval(
    judgements: Sequence[Judgement], *, resamples: int, seed: int
) -> Interval | None:
    """Bootstrap interval of the accuracy on originals."""
    right = [int(case.correct) for case in judgements]
    return ratio_interval(right, [1] * len(right), resamples=resamples, seed=seed)


def mcnemar(first: Sequence[bool], second: Sequence[bool]) -> PairedTest:
    """McNemar's exact test: were two models, variant by variant, right equally often?

    Raises:
        ValueError: other numbers of variants.
    """
    pairs = list(zip(first, second, strict=True))
    only_first = sum(one and not other for one, other in pairs)
    only_second = sum(other and not one for one, other in pairs)
    discordant = only_first + only_second
    p_value = float(binomtest(only_first, discordant).pvalue) if discordant else 1.0
    return PairedTest(
        variants=len(pairs), only_first=only_first, only_second=only_second, p_value=p_value
    )


def variants_where(
    judgements: Iterable[Judgement], decide: Callable[[Judgement], Sequence[bool]]
) -> dict[tuple[str, int], bool]:
    """A decision of each variant, by original and the variant's place among its siblings from 1."""
    return {
        (case.original_id, number): value
        for case in judgements
        for number, value in enumerate(decide(case), start=1)
    }
