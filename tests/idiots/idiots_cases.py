"""Synthetic sentences and answers of IdioTS."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pieline.core.conditions import Evidence, RunIdentity
from pieline.llm.answers import Answer
from pieline.reporting.printed import read_published
from pieline.studies.idiots.metrics import DetectionMetrics, detection_metrics
from pieline.studies.idiots.predictions import read_prediction
from pieline.studies.idiots.records import DetectionPrediction, DistractorKind, IdiotsSentence

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "data" / "sample" / "idiots"
PIE = "To spill the beans"


def sentences(
    idiomatic: int, distractors: int, kinds: Sequence[DistractorKind | None] = (None,)
) -> list[IdiotsSentence]:
    """Return a test suite of this size, cycling through the kinds of distractors."""
    rows = [(f"idi{number:03}-sen01-id", True) for number in range(idiomatic)]
    rows += [(f"idi{number:03}-sen02-di", False) for number in range(distractors)]
    return [
        IdiotsSentence(
            id=name,
            pie_id=name[:6],
            pie=PIE,
            sentence=f"Sentence {name}.",
            translation="",
            is_idiomatic=label,
            distractor_kind=None if label else kinds[number % len(kinds)],
        )
        for number, (name, label) in enumerate(rows)
    ]


def answer(name: str, text: str | None, **fields: Any) -> Answer:
    """Return a model's answer about a sentence."""
    return Answer(key=f"answer to {name}", text=text, **{"finish_reason": "stop"} | fields)


def says(has_idiom: bool, idiom: str = "") -> str:
    """Return the text of a well-formed answer."""
    return json.dumps({"hasIdiom": has_idiom, "idiom": idiom, "meaning": "m", "explanation": "e"})


def texts_of(
    suite: Sequence[IdiotsSentence],
    *,
    true_positives: int,
    right_idiom: int,
    true_negatives: int,
    pie_in_distractor: int,
) -> list[str]:
    """Return the texts of a model's answers with these numbers of sentences."""
    texts = [says(True, "spilled the beans")] * right_idiom
    texts += [says(True, "used the old model")] * (true_positives - right_idiom)
    positives = sum(sentence.is_idiomatic for sentence in suite)
    texts += [says(False)] * (positives - true_positives)
    false_positives = len(suite) - positives - true_negatives
    texts += [says(True, "spill the beans")] * pie_in_distractor
    texts += [says(True, "cut and tighten")] * (false_positives - pie_in_distractor)
    texts += [says(False)] * true_negatives
    return texts


def predictions_of(suite: Sequence[IdiotsSentence], **counts: int) -> list[DetectionPrediction]:
    """Return the answers of a model with these numbers of sentences (see `texts_of`)."""
    return [
        read_prediction(sentence.id, answer(sentence.id, text))
        for sentence, text in zip(suite, texts_of(suite, **counts), strict=True)
    ]


def score(
    suite: Sequence[IdiotsSentence],
    predictions: Sequence[DetectionPrediction],
    *,
    model: str = "a-model",
    resamples: int = 50,
    **options: Any,
) -> DetectionMetrics:
    """Return the metrics of a run of this model."""
    options = {"origin": "released"} | options
    return detection_metrics(
        suite,
        predictions,
        RunIdentity(model, "zero_shot", 0),
        Evidence(),
        resamples=resamples,
        **options,
    )


def published(table: str, key: str = "model") -> dict[str, dict[str, float]]:
    """Return the rows of a file in published/."""
    rows = read_published(ROOT / "published" / f"{table}.csv", [key])
    return {name: row for (name,), row in rows.items()}
