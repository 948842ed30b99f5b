"""What a prompt changes: runs of one model against its baseline, on the same originals.

A prompt may lower negative drift and yet help nobody: a model that never names an idiom never
drifts. So beside ND stand the errors on variants, which are false alarms where the PIE is literal
and misses where it is idiomatic.
"""

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

from pieline.core.uncertainty import Interval, draw_units, percentile_interval, resampled_ratios
from pieline.studies.jam.metrics.drift import (
    Counts,
    DriftComparison,
    JudgedOriginal,
    accuracy,
    compare_shares,
    counts_by_original,
    successes_and_flips,
    variants_and_errors,
)

USAGES: Mapping[str, tuple[bool, ...]] = {
    "all": (False, True),
    "literal": (False,),
    "idiomatic": (True,),
}
"""Originals that are counted together, by whether their PIE is figurative."""
Seeds = Sequence[Sequence[JudgedOriginal]]


class Effect(DriftComparison):
    """A share of a run minus that of the baseline, on the same originals.

    Attributes:
        interval: 95 % bootstrap interval of the difference, over originals (a fraction).
    """

    interval: Interval | None


class PromptMeasures(NamedTuple):
    """Originals of one usage under one prompt; shares are fractions, over all seeds together.

    Attributes:
        accuracy: on the originals; null without any.
        success: S, the mean over seeds.
        drift: ND; null where S is 0.
        errors: the share of all variants that were judged wrong.
        drift_effect, errors_effect: against the baseline; null for the baseline itself, for a run
            that is compared with none, and where one of the shares is unknown.
    """

    accuracy: float | None
    success: float
    drift: float | None
    errors: float | None
    drift_effect: Effect | None
    errors_effect: Effect | None


def prompt_measures(
    runs: Mapping[str, Seeds],
    baseline: str,
    usage: str,
    *,
    beside: Sequence[str] = (),
    permutations: int,
    resamples: int,
) -> dict[str, PromptMeasures]:
    """Measure the runs of one model and language by setting, each against the baseline.

    P-values are of the paired test of `compare_drifts`, corrected for the number of settings.

    Args:
        runs: the originals as judged with each seed.
        baseline: the setting that the others are compared with; it may be missing.
        usage: one of `USAGES`.
        beside: runs that are measured and not compared.
        permutations: sign patterns at most.
        resamples: of the bootstrap.

    Raises:
        ValueError: runs of other originals.
    """
    chosen = {
        name: [[case for case in seed if case.is_figurative in USAGES[usage]] for seed in seeds]
        for name, seeds in runs.items()
    }
    compared = [name for name in runs if name not in (baseline, *beside) and baseline in runs]

    def measured(
        count: Callable[[JudgedOriginal], tuple[int, int]],
    ) -> tuple[dict[str, Counts], dict[str, Effect]]:
        parts = counts_by_original(chosen, count)
        pairs = [(name, baseline) for name in compared if parts[name].size]
        tests = compare_shares(parts, pairs, permutations=permutations, seed=0)
        effects = {
            name: Effect(
                **test.model_dump(),
                interval=difference_interval(parts[name], parts[baseline], resamples=resamples),
            )
            for (name, _), test in tests.items()
        }
        return parts, effects

    drifts, drift_effects = measured(successes_and_flips)
    errors, errors_effects = measured(variants_and_errors)
    found = {}
    for name, seeds in chosen.items():
        right = [share for seed in seeds if (share := accuracy(seed)) is not None]
        found[name] = PromptMeasures(
            accuracy=fmean(right) if right else None,
            success=float(drifts[name][:1].sum()),
            drift=_share(drifts[name]),
            errors=_share(errors[name]),
            drift_effect=drift_effects.get(name),
            errors_effect=errors_effects.get(name),
        )
    return found


def difference_interval(first: Counts, second: Counts, *, resamples: int) -> Interval | None:
    """Interval of the difference of two shares, in which both runs have the same originals drawn.

    Each is of shape (2, originals): base and counted. None for a single original.
    """
    if first.shape[1] < 2:
        return None
    drawn = draw_units([0] * first.shape[1], resamples=resamples, seed=0)
    shares = (resampled_ratios(drawn, counted, base) for base, counted in (first, second))
    return percentile_interval(next(shares) - next(shares))


def _share(parts: Counts) -> float | None:
    """Counted in the base; None where that is empty."""
    base = parts[:1].sum()
    return float(parts[1].sum() / base) if base else None
