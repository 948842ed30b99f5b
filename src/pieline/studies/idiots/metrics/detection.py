"""Metrics of idiom detection on IdioTS (section 5), each with a 95 % bootstrap interval.

An answer that cannot be read (unparseable, empty, refused, ...) is neither "idiom" nor "no
idiom". It counts as wrong in accuracy, recall and specificity; it has no place in precision, in
True Positive Consistency or among the false positives; and the outcome counts report it apart.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from pieline.core.conditions import NO_CONDITIONS, Conditions, MetricRecord
from pieline.core.outcomes import OutcomeName
from pieline.core.records import Frozen
from pieline.core.significance import cohen_kappa
from pieline.core.uncertainty import (
    Counts,
    Ratios,
    draw_units,
    percentile_interval,
    resampled_ratios,
)
from pieline.studies.idiots.datasets import Origin
from pieline.studies.idiots.records import DetectionPrediction, DistractorKind, IdiotsSentence
from pieline.studies.idiots.verdicts import DetectionRun, ErrorType, ReviewCase, names_pie, paired

NO, YES, UNREADABLE = 0, 1, 2
"""Classes of a sentence, and what was said of it, as scikit-learn's labels."""

BOOTSTRAP_SEED = 0

Indicator = NDArray[np.bool_]


class Score(Frozen):
    """A fraction with its interval; None where there is nothing to count.

    `count` and `of` are the two counts that the fraction is made of; a mean of two has none.
    """

    value: float | None
    count: int | None = None
    of: int | None = None
    low: float | None = None
    high: float | None = None


class DetectionMetrics(MetricRecord):
    """Metrics of one run; all scores are fractions, and idiomatic is the positive class.

    Attributes:
        accuracy, misclassification_rate, recall, specificity, precision, balanced_accuracy: the
            first level of evaluation (section 5.1, Table 1).
        true_positive_consistency: of the true positives, those that name the right idiom
            (section 5.2, Table 2).
        distractor_pie_ratio: of all distractors, those whose associated PIE was given a figurative
            meaning (section 5.2.1, Table 3).
        by_distractor_kind: specificity and distractor PIE ratio of each kind of distractor; empty
            where nobody marked the distractors.
        outcomes: how many answers had each outcome.
        verdicts: of the answers that found an idiom, how many a person judged, and how many only
            the matching function.
        kappa: Cohen's kappa of both on the answers that a person judged; None where there is none,
            or only one verdict.
        errors: how many idiomatic sentences were denied (`false_negatives`) or taken for another
            idiom (`wrong_idiom`), and how many distractors were taken for their PIE
            (`false_positives_on_pie`) or something else (`false_positives_elsewhere`).
        error_types: how many of the wrong idioms a person gave each type; empty where nobody did.
        resamples: of the bootstrap.
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


class Fraction(NamedTuple):
    """A metric by sentence: is it in the base, and does it count?"""

    counted: Indicator
    base: Indicator


def detection_metrics(
    sentences: Sequence[IdiotsSentence],
    predictions: Sequence[DetectionPrediction],
    run: DetectionRun,
    *,
    origin: Origin,
    data_note: str = "",
    resamples: int,
    conditions: Conditions = NO_CONDITIONS,
    verdicts: Mapping[str, ReviewCase] | None = None,
    computed_from: Mapping[str, str] | None = None,
) -> DetectionMetrics:
    """Score one run.

    `verdicts` are a person's by sentence, and replace the matching function's.

    Raises:
        UserError: sentences and predictions do not belong together.
    """
    verdicts = verdicts or {}
    cases = paired(sentences, predictions)
    gold = np.array([int(sentence.is_idiomatic) for sentence, _ in cases])
    said = np.array([_label(prediction) for _, prediction in cases])
    matched = {case[0].id: names_pie(*case) for case in cases}
    judged = {name: case.verdict == "yes" for name, case in verdicts.items()}
    named = np.array(list((matched | judged).values()), dtype=bool)
    fractions = _fractions(gold, said, named)
    # The dataset has as many sentences of each class as its authors chose.
    drawn = draw_units(gold, resamples=resamples, seed=BOOTSTRAP_SEED)
    scores = {name: _score(fraction, drawn) for name, fraction in fractions.items()}
    for name, value in first_level(gold, said).items():
        scores[name] = scores[name].model_copy(update={"value": value})
    found = [prediction for prediction in predictions if prediction.has_idiom]
    human = sum(prediction.id in verdicts for prediction in found)
    outcomes = Counter(prediction.outcome for prediction in predictions)
    types = Counter(case.error_type for case in verdicts.values() if case.error_type)
    return DetectionMetrics(
        **run._asdict(),
        origin=origin,
        data_note=data_note,
        idiomatic=int(np.sum(gold == YES)),
        distractors=int(np.sum(gold == NO)),
        **scores,
        balanced_accuracy=_balanced(scores, fractions, drawn),
        by_distractor_kind=_by_kind(cases, fractions, drawn),
        outcomes={name: outcomes[name] for name in get_args(OutcomeName)},
        verdicts={"human": human, "automatic": len(found) - human},
        kappa=cohen_kappa([matched[name] for name in judged], list(judged.values())),
        errors={
            "false_negatives": int(np.sum((gold == YES) & (said == NO))),
            "wrong_idiom": int(np.sum((gold == YES) & (said == YES) & ~named)),
            "false_positives_on_pie": int(np.sum((gold == NO) & (said == YES) & named)),
            "false_positives_elsewhere": int(np.sum((gold == NO) & (said == YES) & ~named)),
        },
        error_types={name: types[name] for name in get_args(ErrorType)} if types else {},
        resamples=resamples,
        conditions=conditions,
        computed_from=dict(computed_from or {}),
    )


def first_level(gold: Counts, said: Counts) -> dict[str, float | None]:
    """Table 1's metrics but balanced accuracy, by scikit-learn, from labels by sentence.

    Gold is `YES` or `NO`, what was said also `UNREADABLE`.
    """
    # It takes longer to load than most jobs that read metric files take.
    from sklearn.metrics import accuracy_score, precision_score, recall_score, zero_one_loss

    options = {"labels": [NO, YES], "average": None, "zero_division": np.nan}
    specificity, recall = recall_score(gold, said, **options)
    _, precision = precision_score(gold, said, **options)
    numbers = {
        "accuracy": accuracy_score(gold, said),
        "misclassification_rate": zero_one_loss(gold, said),
        "recall": recall,
        "specificity": specificity,
        "precision": precision,
    }
    return {name: None if np.isnan(value) else float(value) for name, value in numbers.items()}


def _label(prediction: DetectionPrediction) -> int:
    """What was said of a sentence."""
    return UNREADABLE if prediction.has_idiom is None else int(prediction.has_idiom)


def _fractions(gold: Counts, said: Counts, named: Indicator) -> dict[str, Fraction]:
    """Every metric that is one count of another, by its name in `DetectionMetrics`."""
    everything = np.ones(len(gold), dtype=bool)
    idiomatic, distractor, found = gold == YES, gold == NO, said == YES
    right = gold == said
    return {
        "accuracy": Fraction(right, everything),
        "misclassification_rate": Fraction(~right, everything),
        "recall": Fraction(idiomatic & found, idiomatic),
        "specificity": Fraction(distractor & (said == NO), distractor),
        "precision": Fraction(idiomatic & found, found),
        "true_positive_consistency": Fraction(idiomatic & found & named, idiomatic & found),
        "distractor_pie_ratio": Fraction(distractor & found & named, distractor),
    }


def _by_kind(
    cases: Sequence[tuple[IdiotsSentence, DetectionPrediction]],
    fractions: Mapping[str, Fraction],
    drawn: Counts,
) -> dict[str, dict[str, Score]]:
    """The metrics of distractors by kind."""
    result = {}
    for kind in get_args(DistractorKind):
        members = np.array([sentence.distractor_kind == kind for sentence, _ in cases])
        if members.any():
            result[kind] = {
                name: _score(
                    Fraction(fractions[name].counted & members, fractions[name].base & members),
                    drawn,
                )
                for name in ("specificity", "distractor_pie_ratio")
            }
    return result


def _score(fraction: Fraction, drawn: Counts) -> Score:
    count, base = int(fraction.counted.sum()), int(fraction.base.sum())
    if not base:
        return Score(value=None, count=count, of=base)
    bounds = _bounds(resampled_ratios(drawn, *fraction))
    return Score(value=count / base, count=count, of=base, **bounds)


def _balanced(
    scores: Mapping[str, Score], fractions: Mapping[str, Fraction], drawn: Counts
) -> Score:
    """The mean of recall and specificity."""
    recall, specificity = scores["recall"].value, scores["specificity"].value
    if recall is None or specificity is None:
        return Score(value=None)
    both = [resampled_ratios(drawn, *fractions[name]) for name in ("recall", "specificity")]
    return Score(value=(recall + specificity) / 2, **_bounds((both[0] + both[1]) / 2))


def _bounds(resampled: Ratios) -> dict[str, float]:
    """The ends of the interval, none where the fraction is defined in no resample."""
    interval = percentile_interval(resampled)
    return {name: round(value, 6) for name, value in interval} if interval else {}
