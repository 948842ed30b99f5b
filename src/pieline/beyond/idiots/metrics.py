"""Apply signal detection to IdioTS, to separate a model's ability from its bias to say yes.

An idiom is the signal. A yes answer is a hit for an idiomatic sentence, and a false alarm for a
distractor. Let z be the normal quantile function. Then d′ = z(hit rate) - z(false-alarm rate)
measures ability, and the criterion c = -(z(hit rate) + z(false-alarm rate)) / 2 measures bias. The
criterion is negative for a model that readily says yes.

A log-linear correction keeps the rates between 0 and 1: a rate is (yes answers + s) / (sentences +
2 s), where s is the share of the class among all sentences. With this correction, a model that
always gives the same answer has d′ = 0. The usual correction, in which s is 1/2, has this property
only for classes of equal size.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pieline.core.conditions import Evidence, MetricRecord
from pieline.core.measures import Measure, share
from pieline.core.records import Frozen
from pieline.core.significance import holm
from pieline.core.uncertainty import Interval, draw_units
from pieline.studies.idiots.datasets import Origin
from pieline.studies.idiots.metrics import DetectionMetrics, interval_bounds
from pieline.studies.idiots.records import DetectionPrediction, IdiotsSentence
from pieline.studies.idiots.verdicts import paired

Numbers = NDArray[np.float64]
_YES_COLUMNS = [0, 2]
"""Columns of `counts_by_pie` with the yes answers to idiomatic sentences and to distractors."""
_SENTENCE_COLUMNS = [1, 3]
"""Columns of `counts_by_pie` with the numbers of idiomatic sentences and of distractors."""
Answered = Sequence[tuple[IdiotsSentence, DetectionPrediction]]
"""The sentences of a run, each paired with the model's answer."""


class SignalEstimate(Frozen):
    """An estimate with its 95% bootstrap interval over PIEs.

    Attributes:
        interval: None if the estimate is undefined in all resamples.
        p_holm: p-value of a difference, corrected for the number of differences of the model
            (Holm); None for other estimates.
    """

    value: float
    interval: Interval | None
    p_holm: float | None = None


class SettingSignal(Frozen):
    """Signal-detection metrics of one setting, over all its seeds.

    Attributes:
        deviations: Deviations of the setting's runs from the paper's conditions.
        hits: Share of yes among the readable answers to idiomatic sentences (fraction); None
            without readable answers.
        false_alarms: Share of yes among the readable answers to distractors (fraction); None
            without readable answers.
        unreadable: Number of unreadable answers. The other attributes do not count these answers.
        d_prime: Sensitivity d′; None unless both classes have readable answers.
        criterion: Criterion c; None unless both classes have readable answers.
        d_prime_change: Difference in d′ from the reference setting; None if there is no comparison.
        criterion_change: Difference in c from the reference setting; None if there is no
            comparison.
    """

    setting: str
    deviations: tuple[str, ...] = ()
    hits: float | None
    false_alarms: float | None
    unreadable: int
    d_prime: SignalEstimate | None = None
    criterion: SignalEstimate | None = None
    d_prime_change: SignalEstimate | None = None
    criterion_change: SignalEstimate | None = None


class BiasMetrics(MetricRecord):
    """Signal-detection metrics of one model, for all compared settings."""

    model: str
    origin: Origin
    against: str
    permutations: int
    resamples: int
    settings: list[SettingSignal]


def _measure(name: str) -> Measure[SettingSignal]:
    """Return a measure that reads an estimate and its interval from the field `name`."""

    def value(signal: SettingSignal) -> float | None:
        estimate: SignalEstimate | None = getattr(signal, name)
        return estimate.value if estimate else None

    def interval(signal: SettingSignal) -> Interval | None:
        estimate: SignalEstimate | None = getattr(signal, name)
        return estimate.interval if estimate else None

    return Measure(name, value, interval)


RATES: tuple[Measure[SettingSignal], ...] = (
    share("hits", lambda signal: signal.hits, decimals=1, unknown="no answer could be read"),
    share(
        "false_alarms",
        lambda signal: signal.false_alarms,
        decimals=1,
        unknown="no answer could be read",
    ),
    _measure("d_prime"),
    _measure("criterion"),
    Measure[SettingSignal]("unreadable", lambda signal: signal.unreadable, decimals=0),
)
"""Measures that read the rates and estimates of a setting."""
CHANGES = (_measure("d_prime_change"), _measure("criterion_change"))
"""Measures that read the differences between a setting and the reference setting."""


def bias_metrics(
    runs: Sequence[DetectionMetrics],
    sentences: Sequence[IdiotsSentence],
    predictions: Sequence[Sequence[DetectionPrediction]],
    evidence: Evidence,
    *,
    against: str,
    permutations: int,
    resamples: int,
) -> BiasMetrics:
    """Compare the settings of one model with a reference setting.

    Args:
        runs: Metrics of the model's runs, one for each compared setting and seed.
        sentences: Sentences of all runs.
        predictions: Answers of each run, in the order of `runs`.
        evidence: Conditions and digests of the files behind the numbers.
        against: Reference setting.
        permutations: Number of swap patterns drawn by the paired test.
        resamples: Number of bootstrap resamples.

    Raises:
        UserError: The predictions of a run do not match the sentences.
    """
    answers_by_setting: dict[str, list[Answered]] = {}
    for run, answers in zip(runs, predictions, strict=True):
        answers_by_setting.setdefault(run.setting, []).append(paired(sentences, answers))
    setting_signals = signals(
        answers_by_setting, against, permutations=permutations, resamples=resamples
    )
    deviations = {run.setting: run.conditions.deviations for run in runs}
    return BiasMetrics(
        model=runs[0].model,
        origin=runs[0].origin,
        data_note=runs[0].data_note,
        against=against,
        permutations=permutations,
        resamples=resamples,
        settings=[
            signal.model_copy(update={"deviations": deviations[signal.setting]})
            for signal in setting_signals
        ],
        conditions=evidence.conditions,
        computed_from=dict(evidence.computed_from),
    )


def counts_by_pie(seeds: Sequence[Answered]) -> Numbers:
    """Return counts of readable answers per PIE, averaged over seeds.

    The result has the shape (PIEs, 4), with PIEs sorted by id. The columns are hits, idiomatic
    sentences, false alarms and distractors.
    """
    pies = sorted({sentence.pie_id for sentence, _ in seeds[0]})
    row_of_pie = {pie: row for row, pie in enumerate(pies)}
    counts = np.zeros((len(pies), 4))
    for answered in seeds:
        for sentence, answer in answered:
            if answer.has_idiom is None:
                continue
            row = row_of_pie[sentence.pie_id]
            class_index = 0 if sentence.is_idiomatic else 1
            counts[row, _YES_COLUMNS[class_index]] += answer.has_idiom
            counts[row, _SENTENCE_COLUMNS[class_index]] += 1
    return counts / len(seeds)


def signal_detection(counts: Numbers) -> Numbers:
    """Return d′ and the criterion for counts of answers.

    The last axis of `counts` contains the columns of `counts_by_pie`, and the last axis of the
    result contains d′ and the criterion. The shapes are (..., 4) and (..., 2). The result is NaN if
    a class has no sentences.
    """
    from scipy.special import ndtri  # slow to import

    yes_answers, sentences = counts[..., _YES_COLUMNS], counts[..., _SENTENCE_COLUMNS]
    class_share = sentences / sentences.sum(axis=-1, keepdims=True)
    corrected_rates = (yes_answers + class_share) / (sentences + 2 * class_share)
    z_hits, z_false_alarms = np.moveaxis(ndtri(corrected_rates), -1, 0)
    return np.stack([z_hits - z_false_alarms, -(z_hits + z_false_alarms) / 2], axis=-1)


def swap_test(first: Numbers, second: Numbers, *, permutations: int, seed: int) -> Numbers:
    """Return two-sided p-values of the differences in d′ and in the criterion, shape (2,).

    In this paired randomization test, each pattern determines for which PIEs the two settings swap
    all their answers. The observed assignment counts as one more pattern. Patterns with the
    observed difference count as half (mid-p).

    Args:
        first: Counts by PIE of the first setting, shape (PIEs, 4).
        second: Counts by PIE of the second setting, in the same shape.
        permutations: Number of patterns drawn.
        seed: Seed of the patterns.
    """
    patterns = np.random.default_rng(seed).integers(0, 2, (permutations, len(first)))
    changes_of_totals = patterns @ (second - first)
    # The first row is the observed assignment, which changes nothing.
    changes_of_totals = np.vstack([np.zeros(4), changes_of_totals])
    first_signals = signal_detection(first.sum(axis=0) + changes_of_totals)
    second_signals = signal_detection(second.sum(axis=0) - changes_of_totals)
    # Rounded, so that patterns with the observed difference are recognized.
    differences = np.abs(first_signals - second_signals).round(9)
    observed = differences[0]
    return np.asarray(((differences > observed) + (differences == observed) / 2).mean(axis=0))


def signals(
    runs: Mapping[str, Sequence[Answered]], against: str, *, permutations: int, resamples: int
) -> list[SettingSignal]:
    """Apply signal detection to a model's answers, and compare settings with a reference setting.

    Both settings of a comparison use the same bootstrap draws of PIEs. P-values are corrected for
    the number of comparisons (Holm), separately for d′ and the criterion.

    Args:
        runs: Answered sentences of each seed, by setting.
        against: Reference setting; may be missing from `runs`.
        permutations: Number of swap patterns drawn by the paired test.
        resamples: Number of bootstrap resamples.
    """
    counts = {setting: counts_by_pie(seeds) for setting, seeds in runs.items()}
    resampled_signals = {}
    for setting, setting_counts in counts.items():
        sentences_per_class = setting_counts[:, _SENTENCE_COLUMNS].sum(axis=0)
        if sentences_per_class.all():
            resampled_signals[setting] = _resample_signal(setting_counts, resamples)
    estimates: dict[str, dict[str, SignalEstimate]] = {setting: {} for setting in runs}
    for setting, signal in resampled_signals.items():
        for field, column in _COLUMNS.items():
            estimate = _estimate(signal.value[column], signal.resampled[:, column])
            estimates[setting][field] = estimate
    changes = _changes(counts, resampled_signals, against, permutations)
    results = []
    for setting, seeds in runs.items():
        hits, idiomatic, false_alarms, distractors = counts[setting].sum(axis=0).tolist()
        unreadable = 0
        for answered in seeds:
            unreadable += sum(answer.has_idiom is None for _, answer in answered)
        results.append(
            SettingSignal(
                setting=setting,
                hits=hits / idiomatic if idiomatic else None,
                false_alarms=false_alarms / distractors if distractors else None,
                unreadable=unreadable,
                **estimates[setting],
                **changes.get(setting, {}),
            )
        )
    return results


_COLUMNS = {"d_prime": 0, "criterion": 1}
"""Column of each field of `SettingSignal` in the results of `signal_detection`."""


class _ResampledSignal(NamedTuple):
    """Results of `signal_detection` for a setting.

    Attributes:
        value: Result for all PIEs, shape (2,).
        resampled: Results for bootstrap resamples of the PIEs, shape (resamples, 2).
    """

    value: Numbers
    resampled: Numbers


def _resample_signal(counts: Numbers, resamples: int) -> _ResampledSignal:
    single_stratum = [0] * len(counts)
    draws = draw_units(single_stratum, resamples=resamples, seed=0)
    return _ResampledSignal(
        value=signal_detection(counts.sum(axis=0)), resampled=signal_detection(draws @ counts)
    )


def _changes(
    counts: Mapping[str, Numbers],
    resampled_signals: Mapping[str, _ResampledSignal],
    against: str,
    permutations: int,
) -> dict[str, dict[str, SignalEstimate]]:
    """Return each setting's changes in d′ and c from the reference, by field of `SettingSignal`.

    Only settings in `resampled_signals` are compared.
    """
    if against not in resampled_signals:
        return {}
    reference = resampled_signals[against]
    compared_settings = [setting for setting in resampled_signals if setting != against]
    p_values = {
        setting: swap_test(counts[setting], counts[against], permutations=permutations, seed=0)
        for setting in compared_settings
    }
    changes: dict[str, dict[str, SignalEstimate]] = {setting: {} for setting in compared_settings}
    for field, column in _COLUMNS.items():
        corrected = holm([float(p_values[setting][column]) for setting in compared_settings])
        for setting, p_holm in zip(compared_settings, corrected, strict=True):
            signal = resampled_signals[setting]
            difference = signal.value[column] - reference.value[column]
            resampled_differences = (signal.resampled - reference.resampled)[:, column]
            changes[setting][f"{field}_change"] = _estimate(
                difference, resampled_differences, p_holm
            )
    return changes


def _estimate(value: float, resampled: Numbers, p_holm: float | None = None) -> SignalEstimate:
    bounds = interval_bounds(resampled)
    interval = Interval(**bounds) if bounds else None
    rounded_value = round(float(value), 6) + 0.0  # + 0.0 turns -0.0 into 0.0
    return SignalEstimate(value=rounded_value, interval=interval, p_holm=p_holm)
