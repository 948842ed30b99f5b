"""Compare runs of one model with different prompts on the same originals.

Negative drift alone is insufficient: a model that never names an idiom never drifts. Therefore
error rates on variants are reported as well: false alarms for literal PIEs and misses for idiomatic
ones.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import NamedTuple

from pieline.core.measures import Measure, share
from pieline.core.uncertainty import Interval, draw_units, percentile_interval, resampled_ratios
from pieline.studies.jam.metrics.drift import (
    Counts,
    DriftComparison,
    JudgedOriginal,
    accuracy,
    compare_shares,
    counts_by_original,
    successes_and_flips,
)

USAGES: Mapping[str, tuple[bool, ...]] = {
    "all": (False, True),
    "literal": (False,),
    "idiomatic": (True,),
}
"""Values of `is_figurative` in each subset of originals."""
Seeds = Sequence[Sequence[JudgedOriginal]]


class Effect(DriftComparison):
    """Difference between a run and the baseline on the same originals.

    Attributes:
        interval: 95% bootstrap interval of the difference (fraction) over originals; null if it is
            undefined.
    """

    interval: Interval | None


class PromptMeasures(NamedTuple):
    """Measures of one prompt on originals of one usage, over all seeds; shares are fractions.

    Attributes:
        accuracy: Accuracy on originals; None without originals.
        success: Mean of S over seeds.
        drift: ND; None if S is 0.
        errors: Share of misjudged variants among all variants; None without variants.
        drift_effect: Difference in ND from the baseline; None for the baseline itself, without its
            run, and if ND is undefined for either setting.
        errors_effect: Difference in `errors` from the baseline; None for the baseline itself,
            without its run, and without variants.
    """

    accuracy: float | None
    success: float
    drift: float | None
    errors: float | None
    drift_effect: Effect | None
    errors_effect: Effect | None


def _share(name: str, value: Callable[[PromptMeasures], float | None]) -> Measure[PromptMeasures]:
    return share(name, value, unknown="there is nothing to count")


def _difference(
    name: str, get: Callable[[PromptMeasures], Effect | None]
) -> Measure[PromptMeasures]:
    """Return a measure of an effect in percentage points."""
    in_percent: Measure[PromptMeasures] = share(
        name,
        lambda item: effect.difference if (effect := get(item)) else None,
        lambda item: effect.interval if (effect := get(item)) else None,
    )
    return replace(in_percent, unit="points")


SHARES = (
    _share("accuracy", lambda item: item.accuracy),
    Measure[PromptMeasures]("success", lambda item: item.success, decimals=0),
    _share("negative_drift", lambda item: item.drift),
    _share("variant_errors", lambda item: item.errors),
)
"""Measures of a setting."""
EFFECTS = {
    "drift_effect": _difference("negative_drift_difference", lambda item: item.drift_effect),
    "errors_effect": _difference("variant_errors_difference", lambda item: item.errors_effect),
}
"""Measures of the difference from the reference, by field of `PromptMeasures`."""


def prompt_measures(
    runs: Mapping[str, Seeds],
    baseline: str,
    usage: str,
    *,
    permutations: int,
    resamples: int,
) -> dict[str, PromptMeasures]:
    """Measure each setting of one model in one language, and compare it with the baseline.

    P-values come from the paired test of `compare_drifts`, corrected for the number of compared
    settings.

    Args:
        runs: Judged originals per seed, by setting.
        baseline: Setting to compare with; may be missing from `runs`.
        usage: A key of `USAGES`.
        permutations: Maximum number of sign patterns.
        resamples: Number of bootstrap resamples.

    Raises:
        ValueError: The runs have different originals.
    """
    selected: dict[str, Seeds] = {}
    for name, seeds in runs.items():
        selected[name] = [
            [case for case in seed if case.is_figurative in USAGES[usage]] for seed in seeds
        ]
    compared = [name for name in runs if name != baseline and baseline in runs]

    def compare(
        count: Callable[[JudgedOriginal], tuple[int, int]],
    ) -> tuple[dict[str, Counts], dict[str, Effect]]:
        parts = counts_by_original(selected, count)
        pairs = [(name, baseline) for name in compared if parts[name].size]
        tests = compare_shares(parts, pairs, permutations=permutations, seed=0)
        effects = {}
        for (name, _), test in tests.items():
            interval = difference_interval(parts[name], parts[baseline], resamples=resamples)
            effects[name] = Effect(**test.model_dump(), interval=interval)
        return parts, effects

    drifts, drift_effects = compare(successes_and_flips)
    errors, errors_effects = compare(variants_and_errors)
    measures = {}
    for name, seeds in selected.items():
        right = [share for share in map(accuracy, seeds) if share is not None]
        measures[name] = PromptMeasures(
            accuracy=fmean(right) if right else None,
            success=float(drifts[name][:1].sum()),
            drift=_ratio(drifts[name]),
            errors=_ratio(errors[name]),
            drift_effect=drift_effects.get(name),
            errors_effect=errors_effects.get(name),
        )
    return measures


def variants_and_errors(case: JudgedOriginal) -> tuple[int, int]:
    """Return the number of an original's variants, and the number that were misjudged."""
    return len(case.variants), sum(not right for right in case.variants.values())


def difference_interval(first: Counts, second: Counts, *, resamples: int) -> Interval | None:
    """Return the 95% bootstrap interval of the difference between two paired shares.

    Both arrays have shape (2, originals): denominator and numerator. Returns None for fewer than
    two originals, or if the difference is undefined in all resamples.
    """
    if first.shape[1] < 2:
        return None
    draws = draw_units([0] * first.shape[1], resamples=resamples, seed=0)
    shares = (resampled_ratios(draws, counted, base) for base, counted in (first, second))
    return percentile_interval(next(shares) - next(shares))


def _ratio(parts: Counts) -> float | None:
    """Return numerator over denominator; None if the denominator is zero."""
    base = parts[:1].sum()
    return float(parts[1].sum() / base) if base else None
