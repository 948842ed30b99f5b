"""Compare runs of one model with different prompts on the same originals.

Negative drift alone is insufficient: a model that never names an idiom never drifts. Therefore,
error rates on variants are reported as well. These errors are false alarms for literal PIEs, and
misses for idiomatic PIEs.
"""

from collections.abc import Callable, Mapping, Sequence
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
"""Values of `is_figurative` of the originals in each group of usages."""
Seeds = Sequence[Sequence[JudgedOriginal]]
"""The judged originals of each seed of one setting."""


class Effect(DriftComparison):
    """Difference in ND or in errors between a setting and the baseline, on the same originals.

    Attributes:
        interval: 95% bootstrap interval of the difference (fraction) over originals; null if the
            interval is undefined.
    """

    interval: Interval | None


class PromptMeasures(NamedTuple):
    """Measures of one setting on originals of one usage, over all seeds; shares are fractions.

    Attributes:
        accuracy: Accuracy on originals; None without originals.
        success: S, averaged over seeds.
        drift: ND; None if S is 0.
        errors: Share of misjudged variants among all variants; None without variants.
        drift_effect: Difference in ND from the baseline. None for the baseline itself, if the
            baseline was not run, and if ND is undefined for either setting.
        errors_effect: Difference in `errors` from the baseline. None for the baseline itself, if
            the baseline was not run, and without variants.
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
    name: str, get_effect: Callable[[PromptMeasures], Effect | None]
) -> Measure[PromptMeasures]:
    """Return a measure that reads an effect's difference and interval, in percentage points."""

    def difference(measures: PromptMeasures) -> float | None:
        effect = get_effect(measures)
        return effect.difference if effect else None

    def interval(measures: PromptMeasures) -> Interval | None:
        effect = get_effect(measures)
        return effect.interval if effect else None

    return share(name, difference, interval, unit="points")


SHARES = (
    _share("accuracy", lambda measures: measures.accuracy),
    Measure[PromptMeasures]("success", lambda measures: measures.success, decimals=0),
    _share("negative_drift", lambda measures: measures.drift),
    _share("variant_errors", lambda measures: measures.errors),
)
"""Measures that read accuracy, S, ND and the share of errors on variants of a setting."""
EFFECTS = {
    "drift_effect": _difference(
        "negative_drift_difference", lambda measures: measures.drift_effect
    ),
    "errors_effect": _difference(
        "variant_errors_difference", lambda measures: measures.errors_effect
    ),
}
"""Measures that read the difference from the baseline, by field of `PromptMeasures`."""


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
    usage_runs: dict[str, Seeds] = {}
    for setting, seeds in runs.items():
        usage_runs[setting] = [
            [original for original in seed if original.is_figurative in USAGES[usage]]
            for seed in seeds
        ]
    drifts = counts_by_original(usage_runs, successes_and_flips)
    errors = counts_by_original(usage_runs, variants_and_errors)
    drift_effects = _effects(drifts, baseline, permutations=permutations, resamples=resamples)
    errors_effects = _effects(errors, baseline, permutations=permutations, resamples=resamples)
    measures = {}
    for setting, seeds in usage_runs.items():
        seed_accuracies = [accuracy(seed) for seed in seeds]
        known_accuracies = [value for value in seed_accuracies if value is not None]
        successes, _ = drifts[setting]
        measures[setting] = PromptMeasures(
            accuracy=fmean(known_accuracies) if known_accuracies else None,
            success=float(successes.sum()),
            drift=_ratio(drifts[setting]),
            errors=_ratio(errors[setting]),
            drift_effect=drift_effects.get(setting),
            errors_effect=errors_effects.get(setting),
        )
    return measures


def _effects(
    counts: Mapping[str, Counts], baseline: str, *, permutations: int, resamples: int
) -> dict[str, Effect]:
    """Return the effect of each setting against the baseline; omit settings without originals.

    Args:
        counts: Denominators and numerators by setting (see `difference_interval`).
        baseline: Setting to compare with; may be missing from `counts`.
        permutations: Maximum number of sign patterns.
        resamples: Number of bootstrap resamples.
    """
    if baseline not in counts:
        return {}
    compared_settings = [
        setting for setting in counts if setting != baseline and counts[setting].size
    ]
    pairs = [(setting, baseline) for setting in compared_settings]
    effects = {}
    tests = compare_shares(counts, pairs, permutations=permutations, seed=0)
    for (setting, _baseline), test in tests.items():
        interval = difference_interval(counts[setting], counts[baseline], resamples=resamples)
        effects[setting] = Effect(**test.model_dump(), interval=interval)
    return effects


def variants_and_errors(original: JudgedOriginal) -> tuple[int, int]:
    """Return the number of an original's variants, and the number of misjudged variants."""
    misjudged = [variant for variant, is_right in original.variants.items() if not is_right]
    return len(original.variants), len(misjudged)


def difference_interval(first: Counts, second: Counts, *, resamples: int) -> Interval | None:
    """Return the 95% bootstrap interval of the difference between two paired shares.

    The interval is None for fewer than two originals, or if the difference is undefined in all
    resamples.

    Args:
        first: Denominator and numerator of the first share, shape (2, originals).
        second: Denominator and numerator of the second share, in the same shape.
        resamples: Number of resamples of the originals.
    """
    _, original_count = first.shape
    if original_count < 2:
        return None
    single_stratum = [0] * original_count
    draws = draw_units(single_stratum, resamples=resamples, seed=0)
    first_denominator, first_numerator = first
    second_denominator, second_numerator = second
    first_shares = resampled_ratios(draws, first_numerator, first_denominator)
    second_shares = resampled_ratios(draws, second_numerator, second_denominator)
    return percentile_interval(first_shares - second_shares)


def _ratio(counts: Counts) -> float | None:
    """Return the sum of numerators over the sum of denominators; None if the latter is 0.

    Args:
        counts: Denominators and numerators, shape (2, originals).
    """
    denominators, numerators = counts
    denominator = denominators.sum()
    return float(numerators.sum() / denominator) if denominator else None
