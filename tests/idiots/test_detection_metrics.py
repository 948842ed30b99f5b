"""Correctness, intervals, and undefined metrics."""

from collections.abc import Sequence
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from idiots_cases import answer, predictions_of, says, score, sentences
from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    precision_score,
    recall_score,
    zero_one_loss,
)

from pieline.core.errors import UserError
from pieline.core.outcomes import OutcomeName
from pieline.core.uncertainty import Interval, draw_units, percentile_interval, resampled_ratios
from pieline.studies.idiots.metrics import NO, UNREADABLE, YES, Score
from pieline.studies.idiots.predictions import read_prediction
from pieline.studies.idiots.records import DetectionPrediction, IdiotsSentence

SUITE = sentences(2, 2)


def predict(
    texts: Sequence[str | None], suite: Sequence[IdiotsSentence] = SUITE
) -> list[DetectionPrediction]:
    return [
        read_prediction(sentence.id, answer(sentence.id, text))
        for sentence, text in zip(suite, texts, strict=True)
    ]


def test_an_unreadable_answer_is_always_wrong_and_never_positive() -> None:
    metrics = score(SUITE, predict([says(True, "spill the beans"), "Yes!", says(False), "No!"]))
    counted = {
        name: (getattr(metrics, name).count, getattr(metrics, name).of)
        for name in ("accuracy", "recall", "specificity", "precision", "distractor_pie_ratio")
    }
    assert counted == {
        "accuracy": (2, 4),
        "recall": (1, 2),
        "specificity": (1, 2),
        "precision": (1, 1),
        "distractor_pie_ratio": (0, 2),
    }
    counts = dict.fromkeys(get_args(OutcomeName), 0)
    assert metrics.outcomes == counts | {"ok": 2, "unparseable": 2}


def test_errors_are_distinguished() -> None:
    texts = [
        *(says(True, "spill the beans"), says(True, "else"), says(True, "other"), says(False), "?"),
        *(says(True, "spill the beans"), says(True, "else"), says(False), "?"),
    ]
    suite = sentences(5, 4)
    metrics = score(suite, predict(texts, suite))
    assert (metrics.idiomatic, metrics.distractors) == (5, 4)
    assert metrics.errors == {
        "false_negatives": 1, "wrong_idiom": 2,
        "false_positives_on_pie": 1, "false_positives_elsewhere": 1,
    }  # fmt: skip
    assert (metrics.verdicts, metrics.kappa) == ({"human": 0, "automatic": 5}, None)
    assert (metrics.true_positive_consistency.count, metrics.true_positive_consistency.of) == (1, 3)
    assert metrics.error_types == {}


def test_a_model_without_positives_has_no_precision_or_consistency() -> None:
    metrics = score(SUITE, predict(["", "", "", ""]))
    assert metrics.accuracy.value == metrics.recall.value == metrics.specificity.value == 0
    assert metrics.precision == Score(value=None, count=0, of=0)
    assert metrics.true_positive_consistency == Score(value=None, count=0, of=0)
    assert metrics.distractor_pie_ratio.value == 0


def test_distractor_metrics_are_unknown_without_distractors() -> None:
    suite = sentences(3, 0)
    counts = {"true_positives": 2, "right_idiom": 1, "true_negatives": 0, "pie_in_distractor": 0}
    metrics = score(suite, predictions_of(suite, **counts))
    assert metrics.specificity.value is None
    assert metrics.balanced_accuracy == Score(value=None)
    assert metrics.recall.value == pytest.approx(2 / 3)


def test_distractors_by_kind() -> None:
    suite = sentences(1, 4, kinds=("parts", "look_alike"))
    texts = [says(True), says(True, "spill beans"), says(True, "else"), says(False), says(False)]
    predictions = predict(texts, suite)
    kinds = score(suite, predictions).by_distractor_kind
    # Sentences 1 to 4 are look_alike, parts, look_alike, parts.
    assert {kind: (s["specificity"].value, s["distractor_pie_ratio"].value) for kind, s in
            kinds.items()} == {"look_alike": (0.5, 0.5), "parts": (0.5, 0.0)}  # fmt: skip
    assert score(sentences(1, 4), predictions).by_distractor_kind == {}


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.sampled_from([True, False, None])), min_size=2))
def test_the_first_level_matches_scikit_learn(rows: list[tuple[bool, bool | None]]) -> None:
    rows = sorted(rows, key=lambda row: not row[0])
    positives = sum(label for label, _ in rows)
    suite = sentences(positives, len(rows) - positives)
    texts = ["no object" if predicted is None else says(predicted) for _, predicted in rows]
    metrics = score(suite, predict(texts, suite), resamples=20)
    labels = [YES if label else NO for label, _ in rows]
    answers = [
        UNREADABLE if predicted is None else YES if predicted else NO for _, predicted in rows
    ]
    options = {"labels": [NO, YES], "average": None, "zero_division": np.nan}
    specificity, recall = recall_score(labels, answers, **options)
    for name, expected in {
        "accuracy": accuracy_score(labels, answers),
        "misclassification_rate": zero_one_loss(labels, answers),
        "recall": recall,
        "specificity": specificity,
        "precision": precision_score(labels, answers, **options)[YES],
    }.items():
        metric: Score = getattr(metrics, name)
        assert metric.value == (None if np.isnan(expected) else expected)
        assert metric.count is not None and metric.of is not None
        assert metric.value is None or metric.value == pytest.approx(metric.count / metric.of)
    if 0 < positives < len(rows) and all(predicted is not None for _, predicted in rows):
        gold, predicted = zip(*rows, strict=True)
        assert metrics.balanced_accuracy.value == pytest.approx(
            balanced_accuracy_score(gold, predicted)
        )


def test_the_bootstrap_is_seeded_and_keeps_the_classes() -> None:
    gold = np.array([YES] * 5 + [NO] * 3)
    weights = draw_units(gold, resamples=200, seed=0)
    assert (weights == draw_units(gold, resamples=200, seed=0)).all()
    assert set(weights[:, gold == YES].sum(axis=1)) == {5}
    assert set(weights[:, gold == NO].sum(axis=1)) == {3}


def test_resamples_without_a_denominator_are_skipped() -> None:
    ratios = resampled_ratios(np.array([[2, 0], [0, 2], [1, 1]]), [0.5, 0], [1, 0])
    assert ratios.tolist() == [0.5, pytest.approx(np.nan, nan_ok=True), 0.5]
    assert percentile_interval(ratios) == Interval(low=0.5, high=0.5)
    assert percentile_interval(ratios[1:2]) is None


def test_an_interval_has_its_theoretical_width() -> None:
    suite = sentences(400, 400)
    counts = {"true_positives": 200, "right_idiom": 0, "true_negatives": 400}
    metrics = score(suite, predictions_of(suite, **counts, pie_in_distractor=0), resamples=4000)
    half = 1.96 * (0.25 / 400) ** 0.5
    recall, balanced = metrics.recall, metrics.balanced_accuracy
    assert (recall.low, recall.high) == pytest.approx((0.5 - half, 0.5 + half), abs=0.006)
    assert (metrics.specificity.low, metrics.specificity.high) == (1, 1)
    assert balanced.low == pytest.approx(0.75 - half / 2, abs=0.004)


def test_predictions_for_other_sentences_are_rejected() -> None:
    counts = {"true_positives": 2, "right_idiom": 1, "true_negatives": 1, "pie_in_distractor": 0}
    predictions = predictions_of(SUITE, **counts)
    for suite, more in ((SUITE[:3], []), (SUITE, predictions[:1])):
        with pytest.raises(UserError, match="do not match"):
            score(suite, [*predictions, *more])
