"""The metric file of one model, setting and seed on ID10M-JAM."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from pieline.core.conditions import NO_CONDITIONS, Conditions, MetricRecord
from pieline.core.errors import UserError
from pieline.core.uncertainty import Interval
from pieline.studies.jam.bio import Tag
from pieline.studies.jam.metrics.drift import (
    Confusion,
    Drift,
    JudgedOriginal,
    accuracy,
    accuracy_interval,
    confusion_as_printed,
    confusion_of_correct,
    confusion_of_variants,
    drift,
    drift_interval,
)
from pieline.studies.jam.metrics.identification import Scoring, is_correct, tags_of_idioms
from pieline.studies.jam.metrics.tokens import TaggingScores, tagging_scores
from pieline.studies.jam.predictions.records import IdiomPrediction
from pieline.studies.jam.records import JamSentence, by_original


class JamMetrics(MetricRecord):
    """Numbers of one run on one language; all shares are fractions.

    Attributes:
        scoring: which decision counts as right (see `is_correct`).
        dataset_is_released: whether the sentences are those of the paper.
        accuracy: over originals.
        overall, literal, idiomatic: S_M, F_M, ND_M of all originals and of the two usages.
        confusion: AC, NC, MX as Table 6 counts language models.
        confusion_of_correct: the same as appendix F's text defines them.
        confusion_of_variants: the same as Table 6 counts encoders.
        tagging_of_originals, tagging_of_variants: F1 of the tags. Idioms that a language model
            names are looked up in the sentence; a prediction that could not be read tags nothing.
        outcomes: number of sentences by what became of their prediction.
        judged: the decisions behind all this.
    """

    language: str
    model: str
    setting: str
    seed: int
    scoring: Scoring
    dataset_is_released: bool
    accuracy: float | None
    accuracy_interval: Interval | None
    overall: Drift
    literal: Drift
    idiomatic: Drift
    confusion: Confusion
    confusion_of_correct: Confusion
    confusion_of_variants: Confusion
    tagging_of_originals: TaggingScores
    tagging_of_variants: TaggingScores | None
    outcomes: dict[str, int]
    judged: list[JudgedOriginal]


def match_predictions(
    sentences: Sequence[JamSentence], predictions: Sequence[IdiomPrediction], *, where: str | Path
) -> dict[str, IdiomPrediction]:
    """Predictions by sentence id: exactly one for each sentence.

    Raises:
        UserError: a sentence without a prediction, or a prediction without its sentence.
    """
    found = {item.id: item for item in predictions}
    if len(found) != len(predictions):
        raise UserError("a sentence is predicted twice", where=where, hint="make it again")
    wanted = {item.id for item in sentences}
    if missing := sorted(wanted ^ found.keys()):
        problem = "no prediction" if missing[0] in wanted else "a prediction without sentence"
        raise UserError(
            f"{problem}: {missing[0]!r} ({len(missing)} in all)",
            where=where,
            hint="predict the same dataset",
        )
    return found


def judge(
    sentences: Sequence[JamSentence],
    predictions: Mapping[str, IdiomPrediction],
    *,
    scoring: Scoring = "paper",
) -> list[JudgedOriginal]:
    """Whether each original and each of its variants was judged rightly, originals by id.

    A variant without its original is left out.
    """

    def right(sentence: JamSentence) -> bool:
        return is_correct(predictions[sentence.id].idioms, sentence, scoring=scoring)

    judged = []
    for name, (first, *variants) in sorted(by_original(sentences).items()):
        if first.is_original:
            judged.append(
                JudgedOriginal(
                    id=name,
                    is_figurative=first.is_figurative,
                    correct=right(first),
                    variants={item.id: right(item) for item in variants},
                )
            )
    return judged


def jam_metrics(
    sentences: Sequence[JamSentence],
    predictions: Mapping[str, IdiomPrediction],
    *,
    model: str,
    setting: str,
    seed: int,
    scoring: Scoring,
    released: bool,
    data_note: str = "",
    resamples: int,
    conditions: Conditions = NO_CONDITIONS,
    computed_from: dict[str, str],
) -> JamMetrics:
    """All numbers of one run.

    `sentences` are of one language, originals with or without variants; the bootstrap is seeded
    with 0, so that equal runs give equal intervals.

    Raises:
        ValueError: no originals.
    """
    judged = judge(sentences, predictions, scoring=scoring)

    def drift_of(cases: Sequence[JudgedOriginal]) -> Drift:
        return drift(cases, drift_interval(cases, resamples=resamples, seed=0))

    def tags(items: Sequence[JamSentence]) -> TaggingScores | None:
        if not items:
            return None
        return tagging_scores(
            [item.tags for item in items],
            [predicted_tags(item, predictions[item.id]) for item in items],
        )

    of_originals = tags([item for item in sentences if item.is_original])
    if of_originals is None:
        raise ValueError("no originals")
    return JamMetrics(
        language=sentences[0].language,
        model=model,
        setting=setting,
        seed=seed,
        scoring=scoring,
        dataset_is_released=released,
        data_note=data_note,
        accuracy=accuracy(judged),
        accuracy_interval=accuracy_interval(judged, resamples=resamples, seed=0),
        overall=drift_of(judged),
        literal=drift_of([case for case in judged if not case.is_figurative]),
        idiomatic=drift_of([case for case in judged if case.is_figurative]),
        confusion=confusion_as_printed(judged),
        confusion_of_correct=confusion_of_correct(judged),
        confusion_of_variants=confusion_of_variants(judged),
        tagging_of_originals=of_originals,
        tagging_of_variants=tags([item for item in sentences if not item.is_original]),
        outcomes=dict(sorted(Counter(predictions[item.id].outcome for item in sentences).items())),
        judged=judged,
        conditions=conditions,
        computed_from=computed_from,
    )


def predicted_tags(sentence: JamSentence, prediction: IdiomPrediction) -> Sequence[Tag]:
    """An encoder's tags, or those of the idioms that a language model names."""
    if prediction.tags is not None:
        return prediction.tags
    return tags_of_idioms(sentence.tokens, prediction.idioms or ())
