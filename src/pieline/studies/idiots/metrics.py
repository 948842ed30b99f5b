"""Metrics of idiom detection on IdioTS (section 5), each with a 95% bootstrap interval.

An unreadable answer (unparseable, empty, refused, ...) counts as wrong in accuracy, recall and
specificity, and is excluded from precision, True Positive Consistency and the false positives; the
outcome counts list unreadable answers separately.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from pieline.core.conditions import Evidence, MetricRecord, RunIdentity
from pieline.core.measures import Measure
from pieline.core.outcomes import READABLE, OutcomeName
from pieline.core.records import Frozen
from pieline.core.significance import cohen_kappa
from pieline.core.uncertainty import (
    Counts,
    Interval,
    Ratios,
    draw_units,
    percentile_interval,
    resampled_ratios,
)
from pieline.studies.idiots.datasets import Origin
from pieline.studies.idiots.records import DetectionPrediction, DistractorKind, IdiotsSentence
from pieline.studies.idiots.verdicts import ErrorType, ReviewCase, names_pie, paired

NO, YES, UNREADABLE = 0, 1, 2
"""Classes of sentences and answers."""

BOOTSTRAP_SEED = 0

Indicator = NDArray[np.bool_]


class Score(Frozen):
    """A fraction with its 95% interval.

    `value` is None if the fraction is undefined; `low` and `high` are None if the interval is.
    `count` and `of` are the numerator and denominator; both are None for balanced accuracy.
    """

    value: float | None
    count: int | None = None
    of: int | None = None
    low: float | None = None
    high: float | None = None


class DetectionMetrics(MetricRecord):
    """Metrics of one run; all scores are fractions, and idiomatic is the positive class.

    Attributes:
        accuracy, misclassification_rate, recall, specificity, precision, balanced_accuracy: Metrics
            of the first level of evaluation (section 5.1, Table 1).
        true_positive_consistency: Share of true positives that name the right idiom (section 5.2,
            Table 2).
        distractor_pie_ratio: Share of distractors whose associated PIE was given a figurative
            meaning (section 5.2.1, Table 3).
        by_distractor_kind: Specificity and distractor PIE ratio of each kind of distractor; empty
            if the distractors are not marked.
        outcomes: Number of answers by outcome.
        verdicts: Number of answers that detect an idiom, judged by a person or only by the
            matching function.
        kappa: Cohen's kappa between human verdicts and those of the matching function, on the
            answers that a person judged; None if there are no judged answers or all verdicts are
            the same.
        errors: Number of idiomatic sentences in which the model detected no idiom
            (`false_negatives`) or a different idiom (`wrong_idiom`), and of distractors in which it
            detected the PIE (`false_positives_on_pie`) or something else
            (`false_positives_elsewhere`).
        error_types: Number of wrong idioms by the error type that a person assigned; empty if no
            error type was assigned.
        resamples: Number of bootstrap resamples.
    """

    model: str
    setting: str
    seed: int
    origin: Origin
    idiomatic: int
    distractors: int
    accuracy: Score
    misclassification_rate: Score
    recall: Score
    specificity: Score
    precision: Score
    balanced_accuracy: Score
    true_positive_consistency: Score
    distractor_pie_ratio: Score
    by_distractor_kind: dict[str, dict[str, Score]]
    outcomes: dict[str, int]
    verdicts: dict[str, int]
    kappa: float | None
    errors: dict[str, int]
    error_types: dict[ErrorType, int]
    resamples: int


def _fraction(
    name: str, get: Callable[[DetectionMetrics], Score], better: Literal["high", "low"] = "high"
) -> Measure[DetectionMetrics]:
    """Return the measure of a score and its interval."""
    return Measure(
        name,
        lambda item: get(item).value,
        lambda item: _interval(get(item)),
        decimals=3,
        better=better,
    )


def _interval(score: Score) -> Interval | None:
    if score.low is None or score.high is None:
        return None
    return Interval(low=score.low, high=score.high)


def _count(
    name: str, value: Callable[[DetectionMetrics], int | None], unknown: str = ""
) -> Measure[DetectionMetrics]:
    return Measure(name, value, decimals=0, unknown=unknown)


def _entry(field: str, key: str) -> Callable[[DetectionMetrics], int]:
    """Return a getter for one count in a field that maps names to counts."""
    return lambda item: int(getattr(item, field)[key])


def _count_of_type(name: ErrorType, item: DetectionMetrics) -> int | None:
    """Return the number of errors of a type; None if nobody assigned types to the wrong idioms."""
    if item.errors["wrong_idiom"] and not item.error_types:
        return None
    return item.error_types.get(name, 0)


UNSORTED = "its wrong idioms are not sorted yet (error type, in the cases to judge)"
"""Why a run has no numbers of error types."""
DETECTION = (
    _fraction("accuracy", attrgetter("accuracy")),
    _fraction("misclassification_rate", attrgetter("misclassification_rate"), "low"),
    _fraction("recall", attrgetter("recall")),
    _fraction("specificity", attrgetter("specificity")),
    _fraction("precision", attrgetter("precision")),
    _fraction("balanced_accuracy", attrgetter("balanced_accuracy")),
    _count(
        "answers_unreadable",
        lambda item: sum(item.outcomes[name] for name in item.outcomes.keys() - READABLE),
    ),
    *(
        _count(f"answers_{name}", _entry("outcomes", name))
        for name in sorted(get_args(OutcomeName))
    ),
)
"""Measures of section 5.1 (Table 1), and the numbers of answers by outcome."""
CONSISTENCY = (
    _count("positives", lambda item: item.idiomatic),
    _count("true_positives", lambda item: item.true_positive_consistency.of),
    _count("true_positives_with_correct_idiom", lambda item: item.true_positive_consistency.count),
    _fraction("true_positive_consistency", attrgetter("true_positive_consistency")),
    _count("verdicts_human", _entry("verdicts", "human")),
    _count("verdicts_automatic", _entry("verdicts", "automatic")),
    Measure[DetectionMetrics]("kappa", lambda item: item.kappa, decimals=3),
)
"""Measures of section 5.2 (Table 2)."""
DISTRACTORS = (
    _count("distractors", lambda item: item.distractors),
    _count("false_positives_on_associated_pie", lambda item: item.distractor_pie_ratio.count),
    _fraction("ratio", attrgetter("distractor_pie_ratio"), "low"),
    _count("verdicts_human", _entry("verdicts", "human")),
    _count("verdicts_automatic", _entry("verdicts", "automatic")),
)
"""Measures of section 5.2.1 (Table 3)."""
ERRORS = tuple(
    _count(name, _entry("errors", name))
    for name in (
        "false_negatives",
        "wrong_idiom",
        "false_positives_on_pie",
        "false_positives_elsewhere",
    )
)
"""Errors of section 5.2.1."""
ERROR_TYPES = tuple(
    _count(name, partial(_count_of_type, name), UNSORTED) for name in get_args(ErrorType)
)
"""Types of wrong idioms in section 5.2.1."""


def _of_kind(kind: DistractorKind) -> tuple[Measure[DetectionMetrics], ...]:
    """Return the measures of a kind of distractor."""
    ratio = partial(_score_of_kind, kind, "distractor_pie_ratio")
    specificity = partial(_score_of_kind, kind, "specificity")
    return (
        _fraction(f"ratio_{kind}", ratio, "low"),
        _count(f"distractors_{kind}", lambda item: ratio(item).of),
        _fraction(f"specificity_{kind}", specificity),
    )


def _score_of_kind(kind: DistractorKind, name: str, item: DetectionMetrics) -> Score:
    return item.by_distractor_kind[kind][name]


BY_KIND = {kind: _of_kind(kind) for kind in get_args(DistractorKind)}
"""Measures of each kind of distractor."""


class Fraction(NamedTuple):
    """A metric as masks over sentences: numerator and denominator."""

    counted: Indicator
    base: Indicator


def detection_metrics(
    sentences: Sequence[IdiotsSentence],
    predictions: Sequence[DetectionPrediction],
    run: RunIdentity,
    evidence: Evidence,
    *,
    origin: Origin,
    resamples: int,
    verdicts: Mapping[str, ReviewCase] | None = None,
) -> DetectionMetrics:
    """Score one run.

    `verdicts` are human verdicts by sentence id, which override the verdicts of the matching
    function.

    Raises:
        UserError: Sentences and predictions do not match.
    """
    verdicts = verdicts or {}
    cases = paired(sentences, predictions)
    gold = np.array([int(sentence.is_idiomatic) for sentence, _ in cases])
    answers = np.array([_label(prediction) for _, prediction in cases])
    matched = {case[0].id: names_pie(*case) for case in cases}
    human_matches = {name: case.verdict == "yes" for name, case in verdicts.items()}
    matches = np.array(list((matched | human_matches).values()), dtype=bool)
    fractions = _fractions(gold, answers, matches)
    # The class sizes are fixed by the dataset's design, so sentences are drawn within classes.
    draws = draw_units(gold, resamples=resamples, seed=BOOTSTRAP_SEED)
    scores = {name: _score(fraction, draws) for name, fraction in fractions.items()}
    if (accuracy := scores["accuracy"].value) is not None:
        # Match scikit-learn's result, from which the ratio of counts may differ in the last digit.
        rate = scores["misclassification_rate"]
        scores["misclassification_rate"] = rate.model_copy(update={"value": 1 - accuracy})
    positives = [prediction for prediction in predictions if prediction.has_idiom]
    human = sum(prediction.id in verdicts for prediction in positives)
    outcomes = Counter(prediction.outcome for prediction in predictions)
    types = Counter(case.error_type for case in verdicts.values() if case.error_type)
    return DetectionMetrics(
        model=run.model,
        setting=run.setting,
        seed=run.seed,
        origin=origin,
        idiomatic=int(np.sum(gold == YES)),
        distractors=int(np.sum(gold == NO)),
        **scores,
        balanced_accuracy=_balanced(scores, fractions, draws),
        by_distractor_kind=_by_kind(cases, fractions, draws),
        outcomes={name: outcomes[name] for name in get_args(OutcomeName)},
        verdicts={"human": human, "automatic": len(positives) - human},
        kappa=cohen_kappa([matched[name] for name in human_matches], list(human_matches.values())),
        errors=_errors(gold, answers, matches),
        error_types={name: types[name] for name in get_args(ErrorType)} if types else {},
        resamples=resamples,
        **evidence.of_record,
    )


def _label(prediction: DetectionPrediction) -> int:
    """Return the class of an answer: `YES`, `NO` or `UNREADABLE`."""
    return UNREADABLE if prediction.has_idiom is None else int(prediction.has_idiom)


def _fractions(gold: Counts, answers: Counts, matches: Indicator) -> dict[str, Fraction]:
    """Return every metric that is a ratio of two counts, by its name in `DetectionMetrics`."""
    everything = np.ones(len(gold), dtype=bool)
    idiomatic, distractor, positive = gold == YES, gold == NO, answers == YES
    right = gold == answers
    return {
        "accuracy": Fraction(right, everything),
        "misclassification_rate": Fraction(~right, everything),
        "recall": Fraction(idiomatic & positive, idiomatic),
        "specificity": Fraction(distractor & (answers == NO), distractor),
        "precision": Fraction(idiomatic & positive, positive),
        "true_positive_consistency": Fraction(idiomatic & positive & matches, idiomatic & positive),
        "distractor_pie_ratio": Fraction(distractor & positive & matches, distractor),
    }


def _errors(gold: Counts, answers: Counts, matches: Indicator) -> dict[str, int]:
    """Return the number of errors of each kind, by its name in `DetectionMetrics.errors`."""
    idiomatic, distractor, positive = gold == YES, gold == NO, answers == YES
    return {
        "false_negatives": int(np.sum(idiomatic & (answers == NO))),
        "wrong_idiom": int(np.sum(idiomatic & positive & ~matches)),
        "false_positives_on_pie": int(np.sum(distractor & positive & matches)),
        "false_positives_elsewhere": int(np.sum(distractor & positive & ~matches)),
    }


def _by_kind(
    cases: Sequence[tuple[IdiotsSentence, DetectionPrediction]],
    fractions: Mapping[str, Fraction],
    draws: Counts,
) -> dict[str, dict[str, Score]]:
    """Return specificity and distractor PIE ratio by kind of distractor, for kinds that occur."""
    by_kind: dict[str, dict[str, Score]] = {}
    for kind in get_args(DistractorKind):
        members = np.array([sentence.distractor_kind == kind for sentence, _ in cases])
        if not members.any():
            continue
        by_kind[kind] = {}
        for name in ("specificity", "distractor_pie_ratio"):
            counted, base = fractions[name]
            by_kind[kind][name] = _score(Fraction(counted & members, base & members), draws)
    return by_kind


def _score(fraction: Fraction, draws: Counts) -> Score:
    count, base = int(fraction.counted.sum()), int(fraction.base.sum())
    if not base:
        return Score(value=None, count=count, of=base)
    bounds = interval_bounds(resampled_ratios(draws, *fraction))
    return Score(value=count / base, count=count, of=base, **bounds)


def _balanced(
    scores: Mapping[str, Score], fractions: Mapping[str, Fraction], draws: Counts
) -> Score:
    """Return the mean of recall and specificity; its value is None if one of them is undefined."""
    recall, specificity = scores["recall"].value, scores["specificity"].value
    if recall is None or specificity is None:
        return Score(value=None)
    recalls = resampled_ratios(draws, *fractions["recall"])
    specificities = resampled_ratios(draws, *fractions["specificity"])
    return Score(value=(recall + specificity) / 2, **interval_bounds((recalls + specificities) / 2))


def interval_bounds(resampled: Ratios) -> dict[str, float]:
    """Return the bounds `low` and `high` of the 95% interval of a resampled number.

    The result is empty if the number is undefined in all resamples. The bounds are rounded to six
    decimals, because the remaining digits differ between machines.
    """
    interval = percentile_interval(resampled)
    return {name: round(value, 6) + 0.0 for name, value in interval} if interval else {}
