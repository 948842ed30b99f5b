"""Signal detection on IdioTS: separate a model's ability from its bias to say yes.

An idiom is the signal. A yes answer is a hit for an idiomatic sentence, and a false alarm for a
distractor. With z the normal quantile function, d′ = z(hit rate) - z(false-alarm rate) measures
ability, and the criterion c = -(z(hit rate) + z(false-alarm rate)) / 2 measures bias; c is negative
for a model that readily says yes. Rates are corrected log-linearly, so that none is 0 or 1: with s
the share of the class among all sentences, a rate is (yes answers + s) / (sentences + 2 s). With
this correction, a model that always gives the same answer has d′ = 0; with the usual correction by
1/2, this is the case only for classes of equal size.
"""

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter

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
Answered = Sequence[tuple[IdiotsSentence, DetectionPrediction]]
"""The sentences of a run, each with its answer."""


class SignalEstimate(Frozen):
    """An estimate with its 95% bootstrap interval over PIEs.

    `interval` is None if the estimate is undefined in all resamples. Only differences have a
    p-value, which is corrected for the number of differences of the model (Holm).
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
        unreadable: Number of unreadable answers, which are excluded from the other values.
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
    """Return a measure that reads the estimate and its interval from the field of this name."""
    get: Callable[[SettingSignal], SignalEstimate | None] = attrgetter(name)

    def value(item: SettingSignal) -> float | None:
        estimate = get(item)
        return estimate.value if estimate else None

    def interval(item: SettingSignal) -> Interval | None:
        estimate = get(item)
        return estimate.interval if estimate else None

    return Measure(name, value, interval)


RATES: tuple[Measure[SettingSignal], ...] = (
    share("hits", lambda item: item.hits, decimals=1, unknown="no answer could be read"),
    share(
        "false_alarms",
        lambda item: item.false_alarms,
        decimals=1,
        unknown="no answer could be read",
    ),
    _measure("d_prime"),
    _measure("criterion"),
    Measure[SettingSignal]("unreadable", lambda item: item.unreadable, decimals=0),
)
"""Measures of a setting."""
CHANGES = (_measure("d_prime_change"), _measure("criterion_change"))
"""Measures of the difference of a setting from the reference."""


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
        runs: Metrics of the model's runs in every compared setting and seed.
        sentences: Sentences of all runs.
        predictions: Answers of each run, in the order of `runs`.
        evidence: Conditions and digests of the files behind the numbers.
        against: Reference setting.
        permutations: Number of swap patterns drawn by the paired test.
        resamples: Number of bootstrap resamples.

    Raises:
        UserError: The predictions of a run do not match the sentences.
    """
    answered: dict[str, list[Answered]] = {}
    for run, answers in zip(runs, predictions, strict=True):
        answered.setdefault(run.setting, []).append(paired(sentences, answers))
    results = signals(answered, against, permutations=permutations, resamples=resamples)
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
            for signal in results
        ],
        conditions=evidence.conditions,
        computed_from=dict(evidence.computed_from),
    )


def counts_by_pie(seeds: Sequence[Answered]) -> Numbers:
    """Return hits, idiomatic sentences, false alarms and distractors per PIE, averaged over seeds.

    Only sentences with a readable answer count. The shape is (PIEs, 4), with PIEs sorted by id.
    """
    pies = sorted({sentence.pie_id for sentence, _ in seeds[0]})
    place = {pie: number for number, pie in enumerate(pies)}
    counts = np.zeros((len(pies), 4))
    for sentence, answer in (case for seed in seeds for case in seed):
        if answer.has_idiom is not None:
            first = 0 if sentence.is_idiomatic else 2
            counts[place[sentence.pie_id], first : first + 2] += (answer.has_idiom, 1)
    return counts / len(seeds)


def signal_detection(counts: Numbers) -> Numbers:
    """Return d′ and the criterion, given total counts; maps shape (..., 4) to (..., 2).

    The counts are as in `counts_by_pie`. The result is NaN if a class has no sentences.
    """
    from scipy.special import ndtri  # slow to import

    share = counts[..., [1, 3]] / counts[..., [1, 3]].sum(axis=-1, keepdims=True)
    rates = (counts[..., [0, 2]] + share) / (counts[..., [1, 3]] + 2 * share)
    hits, alarms = np.moveaxis(ndtri(rates), -1, 0)
    return np.stack([hits - alarms, -(hits + alarms) / 2], axis=-1)


def swap_test(first: Numbers, second: Numbers, *, permutations: int, seed: int) -> Numbers:
    """Return two-sided p-values of the differences in d′ and criterion, shape (2,).

    In this paired randomization test, each pattern determines for which PIEs the two settings swap
    all their answers. The observed assignment counts as one more pattern, and patterns with an
    equal difference count as half (mid-p).

    Args:
        first: Counts by PIE of one setting, shape (PIEs, 4).
        second: Counts by PIE of the other setting.
        permutations: Number of patterns drawn.
        seed: Seed of the patterns.
    """
    swaps = np.random.default_rng(seed).integers(0, 2, (permutations, len(first)))
    shifts = np.vstack([np.zeros(4), swaps @ (second - first)])
    difference = signal_detection(first.sum(axis=0) + shifts)
    difference -= signal_detection(second.sum(axis=0) - shifts)
    sizes = np.abs(difference).round(9)
    return np.asarray(((sizes > sizes[0]) + (sizes == sizes[0]) / 2).mean(axis=0))


def signals(
    runs: Mapping[str, Sequence[Answered]], against: str, *, permutations: int, resamples: int
) -> list[SettingSignal]:
    """Apply signal detection to each setting of a model, and compare it with the setting `against`.

    Both settings of a comparison use the same bootstrap draws of PIEs. P-values are corrected for
    the number of comparisons (Holm), separately for d′ and the criterion.
    """
    counts = {name: counts_by_pie(seeds) for name, seeds in runs.items()}
    known = [name for name in runs if counts[name][:, [1, 3]].sum(axis=0).all()]
    values = {name: signal_detection(counts[name].sum(axis=0)) for name in known}
    resampled: dict[str, Numbers] = {}
    for name in known:
        times = draw_units([0] * len(counts[name]), resamples=resamples, seed=0)
        resampled[name] = signal_detection(times @ counts[name])
    compared = [name for name in known if name != against and against in known]
    tests = [
        swap_test(counts[name], counts[against], permutations=permutations, seed=0)
        for name in compared
    ]
    p_values = np.array(tests).reshape(-1, 2)
    corrected = np.array([holm(p_values[:, column].tolist()) for column in (0, 1)])

    estimates: dict[str, dict[str, SignalEstimate]] = {name: {} for name in runs}
    for column, measure in enumerate(("d_prime", "criterion")):
        for name in known:
            estimates[name][measure] = _estimate(values[name][column], resampled[name][:, column])
        for place, name in enumerate(compared):
            difference = values[name][column] - values[against][column]
            change = (resampled[name] - resampled[against])[:, column]
            p_holm = float(corrected[column, place])
            estimates[name][f"{measure}_change"] = _estimate(difference, change, p_holm)

    result = []
    for name, seeds in runs.items():
        hits, idiomatic, alarms, distractors = counts[name].sum(axis=0).tolist()
        result.append(
            SettingSignal(
                setting=name,
                hits=hits / idiomatic if idiomatic else None,
                false_alarms=alarms / distractors if distractors else None,
                unreadable=sum(answer.has_idiom is None for seed in seeds for _, answer in seed),
                **estimates[name],
            )
        )
    return result


def _estimate(value: float, resampled: Numbers, p_holm: float | None = None) -> SignalEstimate:
    bounds = interval_bounds(resampled)
    interval = Interval(**bounds) if bounds else None
    return SignalEstimate(value=round(float(value), 6) + 0.0, interval=interval, p_holm=p_holm)
