"""Metrics of idiom detection on IdioTS (section 5), each with a 95% bootstrap interval.

An unreadable answer (unparseable, empty, refused, ...) counts as wrong in accuracy, recall and
specificity. Precision, True Positive Consistency and the false positives ignore unreadable answers.
The number of unreadable answers is in the counts of outcomes.
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
    """A fraction and its 95% interval.

    Attributes:
        value: The fraction; None if it is undefined.
        count: Numerator; None for balanced accuracy.
        of: Denominator; None for balanced accuracy.
        low: Lower bound of the interval; None if the interval is undefined.
        high: Upper bound of the interval; None if the interval is undefined.
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
            if the kinds are unknown.
        outcomes: Number of answers by outcome.
        verdicts: Number of answers that detect an idiom, by who judged them: a person (`human`) or
            only the matching function (`automatic`).
        kappa: Cohen's kappa between human verdicts and verdicts of the matching function, on the
            answers that a person judged; None if there are no such answers or all verdicts are the
            same.
        errors: Number of idiomatic sentences in which the model detected no idiom
            (`false_negatives`) or a different idiom (`wrong_idiom`), and number of distractors in
            which the model detected the PIE (`false_positives_on_pie`) or a different idiom
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
    """Return the measure `name` of a score and its interval; `get` reads the score of a run."""
    return Measure(
        name,
        lambda metrics: get(metrics).value,
        lambda metrics: _interval(get(metrics)),
        decimals=3,
        better=better,
    )


def _interval(score: Score) -> Interval | None:
    """Return the interval of a score; None if the interval is undefined."""
    if score.low is None or score.high is None:
        return None
    return Interval(low=score.low, high=score.high)


def _count(
    name: str, value: Callable[[DetectionMetrics], int | None], unknown: str = ""
) -> Measure[DetectionMetrics]:
    """Return the measure `name` of a count; `unknown` is the reason shown if the value is None."""
    return Measure(name, value, decimals=0, unknown=unknown)


def _entry(field: str, key: str) -> Callable[[DetectionMetrics], int]:
    """Return a function that reads the count `key` from a field of `DetectionMetrics`."""
    return lambda metrics: int(getattr(metrics, field)[key])


def _count_of_type(error_type: ErrorType, metrics: DetectionMetrics) -> int | None:
    """Return the number of wrong idioms of an error type; None if nobody assigned error types."""
    if metrics.errors["wrong_idiom"] and not metrics.error_types:
        return None
    return metrics.error_types.get(error_type, 0)


UNSORTED = "its wrong idioms are not sorted yet (error type, in the cases to judge)"
"""Reason that is shown if the number of an error type is missing."""
DETECTION = (
    _fraction("accuracy", attrgetter("accuracy")),
    _fraction("misclassification_rate", attrgetter("misclassification_rate"), "low"),
    _fraction("recall", attrgetter("recall")),
    _fraction("specificity", attrgetter("specificity")),
    _fraction("precision", attrgetter("precision")),
    _fraction("balanced_accuracy", attrgetter("balanced_accuracy")),
    _count(
        "answers_unreadable",
        lambda metrics: sum(
            metrics.outcomes[outcome] for outcome in metrics.outcomes.keys() - READABLE
        ),
    ),
    *(
        _count(f"answers_{name}", _entry("outcomes", name))
        for name in sorted(get_args(OutcomeName))
    ),
)
"""Measures of section 5.1 (Table 1), and the numbers of answers by outcome."""
CONSISTENCY = (
    _count("positives", lambda metrics: metrics.idiomatic),
    _count("true_positives", lambda metrics: metrics.true_positive_consistency.of),
    _count(
        "true_positives_with_correct_idiom", lambda metrics: metrics.true_positive_consistency.count
    ),
    _fraction("true_positive_consistency", attrgetter("true_positive_consistency")),
    _count("verdicts_human", _entry("verdicts", "human")),
    _count("verdicts_automatic", _entry("verdicts", "automatic")),
    Measure[DetectionMetrics]("kappa", lambda metrics: metrics.kappa, decimals=3),
)
"""Measures of section 5.2 (Table 2)."""
DISTRACTORS = (
    _count("distractors", lambda metrics: metrics.distractors),
    _count("false_positives_on_associated_pie", lambda metrics: metrics.distractor_pie_ratio.count),
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
"""Measures of the errors in section 5.2.1."""
ERROR_TYPES = tuple(
    _count(error_type, partial(_count_of_type, error_type), UNSORTED)
    for error_type in get_args(ErrorType)
)
"""Measures of the types of wrong idioms in section 5.2.1."""


def _measures_of_kind(kind: DistractorKind) -> tuple[Measure[DetectionMetrics], ...]:
    """Return the measures of one kind of distractor."""

    def ratio(metrics: DetectionMetrics) -> Score:
        return metrics.by_distractor_kind[kind]["distractor_pie_ratio"]

    def specificity(metrics: DetectionMetrics) -> Score:
        return metrics.by_distractor_kind[kind]["specificity"]

    return (
        _fraction(f"ratio_{kind}", ratio, "low"),
        _count(f"distractors_{kind}", lambda metrics: ratio(metrics).of),
        _fraction(f"specificity_{kind}", specificity),
    )


BY_KIND = {kind: _measures_of_kind(kind) for kind in get_args(DistractorKind)}
"""Measures of each kind of distractor, by kind."""


class Fraction(NamedTuple):
    """Sentences that a metric counts: `counted` in its numerator, `base` in its denominator.

    Both attributes contain one boolean per sentence.
    """

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

    Args:
        sentences: Sentences of IdioTS.
        predictions: Prediction for each sentence, in any order.
        run: Model, setting and seed.
        evidence: Conditions and digests to store in the result.
        origin: Origin of the sentences.
        resamples: Number of bootstrap resamples.
        verdicts: Human verdicts by sentence id, which replace verdicts of the matching function.

    Raises:
        UserError: Sentences and predictions do not match.
    """
    verdicts = verdicts or {}
    pairs = paired(sentences, predictions)
    gold = np.array([int(sentence.is_idiomatic) for sentence, _ in pairs])
    answers = np.array([_class_of_answer(prediction) for _, prediction in pairs])
    # Whether each answer names the PIE, by sentence id.
    automatic_matches = {sentence.id: names_pie(sentence, answer) for sentence, answer in pairs}
    human_matches = {sentence_id: case.verdict == "yes" for sentence_id, case in verdicts.items()}
    matches_by_id = automatic_matches | human_matches
    matches = np.array([matches_by_id[sentence.id] for sentence, _ in pairs], dtype=bool)
    automatic_labels = [automatic_matches[sentence_id] for sentence_id in human_matches]
    fractions = _fractions(gold, answers, matches)
    # The class sizes are fixed by the dataset's design, so sentences are drawn within classes.
    draws = draw_units(gold, resamples=resamples, seed=BOOTSTRAP_SEED)
    scores = {name: _score(fraction, draws) for name, fraction in fractions.items()}
    accuracy = scores["accuracy"].value
    if accuracy is not None:
        # Match scikit-learn's result, from which the ratio of counts may differ in the last digit.
        rate = scores["misclassification_rate"]
        scores["misclassification_rate"] = rate.model_copy(update={"value": 1 - accuracy})
    positives = [prediction for prediction in predictions if prediction.has_idiom]
    judged_by_people = sum(prediction.id in verdicts for prediction in positives)
    outcomes = Counter(prediction.outcome for prediction in predictions)
    error_types = Counter(case.error_type for case in verdicts.values() if case.error_type)
    counts_by_error_type: dict[ErrorType, int] = {}
    if error_types:
        counts_by_error_type = {name: error_types[name] for name in get_args(ErrorType)}
    return DetectionMetrics(
        model=run.model,
        setting=run.setting,
        seed=run.seed,
        origin=origin,
        idiomatic=int(np.sum(gold == YES)),
        distractors=int(np.sum(gold == NO)),
        **scores,
        balanced_accuracy=_balanced_accuracy(scores, fractions, draws),
        by_distractor_kind=_scores_by_kind(sentences, fractions, draws),
        outcomes={name: outcomes[name] for name in get_args(OutcomeName)},
        verdicts={"human": judged_by_people, "automatic": len(positives) - judged_by_people},
        kappa=cohen_kappa(automatic_labels, list(human_matches.values())),
        errors=_errors(gold, answers, matches),
        error_types=counts_by_error_type,
        resamples=resamples,
        **evidence.of_record,
    )


def _class_of_answer(prediction: DetectionPrediction) -> int:
    """Return the class of an answer: `YES`, `NO` or `UNREADABLE`."""
    if prediction.has_idiom is None:
        return UNREADABLE
    return YES if prediction.has_idiom else NO


def _fractions(gold: Counts, answers: Counts, matches: Indicator) -> dict[str, Fraction]:
    """Return the counts behind each metric that is a ratio, by field name in `DetectionMetrics`.

    Args:
        gold: Class of each sentence.
        answers: Class of each answer.
        matches: Whether each answer names the PIE of the sentence.
    """
    all_sentences = np.ones(len(gold), dtype=bool)
    idiomatic, distractor, positive = gold == YES, gold == NO, answers == YES
    is_correct = gold == answers
    true_positive = idiomatic & positive
    return {
        "accuracy": Fraction(is_correct, all_sentences),
        "misclassification_rate": Fraction(~is_correct, all_sentences),
        "recall": Fraction(true_positive, idiomatic),
        "specificity": Fraction(distractor & (answers == NO), distractor),
        "precision": Fraction(true_positive, positive),
        "true_positive_consistency": Fraction(true_positive & matches, true_positive),
        "distractor_pie_ratio": Fraction(distractor & positive & matches, distractor),
    }


def _errors(gold: Counts, answers: Counts, matches: Indicator) -> dict[str, int]:
    """Return the number of errors of each kind, by key of `DetectionMetrics.errors`.

    The arguments are the same as those of `_fractions`.
    """
    idiomatic, distractor, positive = gold == YES, gold == NO, answers == YES
    return {
        "false_negatives": int(np.sum(idiomatic & (answers == NO))),
        "wrong_idiom": int(np.sum(idiomatic & positive & ~matches)),
        "false_positives_on_pie": int(np.sum(distractor & positive & matches)),
        "false_positives_elsewhere": int(np.sum(distractor & positive & ~matches)),
    }


def _scores_by_kind(
    sentences: Sequence[IdiotsSentence], fractions: Mapping[str, Fraction], draws: Counts
) -> dict[str, dict[str, Score]]:
    """Return the specificity and distractor PIE ratio of each kind of distractor in the data."""
    scores_by_kind: dict[str, dict[str, Score]] = {}
    for kind in get_args(DistractorKind):
        is_of_kind = np.array([sentence.distractor_kind == kind for sentence in sentences])
        if not is_of_kind.any():
            continue
        scores_by_kind[kind] = {}
        for name in ("specificity", "distractor_pie_ratio"):
            counted, base = fractions[name]
            of_kind = Fraction(counted & is_of_kind, base & is_of_kind)
            scores_by_kind[kind][name] = _score(of_kind, draws)
    return scores_by_kind


def _score(fraction: Fraction, draws: Counts) -> Score:
    """Return the score of a metric and its 95% interval.

    `draws` contains how often each resample draws each sentence (see `draw_units`).
    """
    numerator, denominator = int(fraction.counted.sum()), int(fraction.base.sum())
    if denominator == 0:
        return Score(value=None, count=numerator, of=denominator)
    bounds = interval_bounds(resampled_ratios(draws, fraction.counted, fraction.base))
    return Score(value=numerator / denominator, count=numerator, of=denominator, **bounds)


def _balanced_accuracy(
    scores: Mapping[str, Score], fractions: Mapping[str, Fraction], draws: Counts
) -> Score:
    """Return the mean of recall and specificity; its value is None if either is undefined."""
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
    if interval is None:
        return {}
    # Adding 0.0 turns -0.0 into 0.0.
    return {"low": round(interval.low, 6) + 0.0, "high": round(interval.high, 6) + 0.0}
