"""Compute the metric file of one ID10M-JAM run: one language, model, setting and seed."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import attrgetter
from pathlib import Path

from pieline.core.conditions import Evidence, Measured, RunIdentity
from pieline.core.errors import UserError
from pieline.core.measures import Measure, share
from pieline.core.outcomes import READABLE
from pieline.core.uncertainty import Interval, ratio_interval
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
from pieline.studies.jam.settings import ADDED, FINE_TUNED


class JamMetrics(Measured):
    """Metrics of one run on one language; all shares are fractions.

    Attributes:
        language: Language of the sentences.
        model: Name of the model in models.yaml.
        setting: Prompt setting, encoder setting (such as `fine_tuned`) or `baseline`.
        seed: Seed of the run.
        scoring: Scoring rule (see `is_correct`).
        accuracy: Accuracy on originals.
        accuracy_interval: 95% bootstrap interval of the accuracy over originals.
        overall: S_M, F_M and ND_M of all originals.
        literal: S_M, F_M and ND_M of literal originals.
        idiomatic: S_M, F_M and ND_M of idiomatic originals.
        confusion: AC, NC and MX as in Table 6 for language models.
        confusion_of_correct: AC, NC and MX as defined in the text of appendix F.
        confusion_of_variants: AC, NC and MX as in Table 6 for encoders.
        tagging_of_originals: Tagging scores on originals. Idioms named by a language model are
            located in the sentence; unreadable predictions count as all O.
        tagging_of_variants: Tagging scores on variants; null without variants.
        outcomes: Number of sentences by prediction outcome.
        judged: Decisions on which accuracy, drift and confusion are based.
    """

    language: str
    model: str
    setting: str
    seed: int
    scoring: Scoring
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


def _measures_of_drift(field: str, suffix: str = "") -> tuple[Measure[JamMetrics], ...]:
    """Return the measures S, F and ND of a field of `JamMetrics` that contains a `Drift`.

    `suffix` is appended to the names of the measures.
    """

    def drift_of(metrics: JamMetrics) -> Drift:
        result: Drift = getattr(metrics, field)
        return result

    return (
        Measure(f"success{suffix}", lambda metrics: drift_of(metrics).success),
        Measure(f"flipped{suffix}", lambda metrics: drift_of(metrics).flipped),
        share(
            f"negative_drift{suffix}",
            lambda metrics: drift_of(metrics).negative_drift,
            lambda metrics: drift_of(metrics).interval,
            better="low",
            unknown="no such original was judged correctly, so no variant could drift",
        ),
    )


def _confusion_class(name: str, metrics: JamMetrics) -> int:
    """Return AC, NC or MX of a run as in Table 6; `name` is its field name in `Confusion`."""
    # The paper counts variants for encoders and originals for language models.
    is_encoder = metrics.setting in (FINE_TUNED, *ADDED)
    confusion = metrics.confusion_of_variants if is_encoder else metrics.confusion
    return int(getattr(confusion, name))


def _measures_of_originals(
    suffix: str, select: Callable[[JamMetrics], list[JudgedOriginal]]
) -> tuple[Measure[JamMetrics], ...]:
    """Return the measures of the share and the number of correctly judged originals.

    Args:
        suffix: Text appended to the names of the measures.
        select: Function that returns the originals to consider.
    """
    return (
        share(
            f"accuracy{suffix}",
            lambda metrics: accuracy(select(metrics)),
            unknown="there is no such original",
        ),
        Measure(f"right{suffix}", lambda metrics: sum(case.correct for case in select(metrics))),
    )


def _literal_originals(metrics: JamMetrics) -> list[JudgedOriginal]:
    return [case for case in metrics.judged if not case.is_figurative]


def _idiomatic_originals(metrics: JamMetrics) -> list[JudgedOriginal]:
    return [case for case in metrics.judged if case.is_figurative]


def _measure_of_f1(unit: str, sentences: str) -> Measure[JamMetrics]:
    """Return the measure of the F1 of predicted tags.

    Args:
        unit: `span` or `token`.
        sentences: `originals` or `variants`.
    """

    def f1(metrics: JamMetrics) -> float | None:
        scores: TaggingScores | None = getattr(metrics, f"tagging_of_{sentences}")
        return None if scores is None else float(getattr(scores, f"{unit}_f1"))

    return share(f"{unit}_f1_{sentences}", f1, unknown="there are no hard variants")


ACCURACY: Measure[JamMetrics] = share(
    "accuracy", attrgetter("accuracy"), attrgetter("accuracy_interval")
)
UNREADABLE = Measure[JamMetrics](
    "unreadable",
    lambda metrics: sum(metrics.outcomes[name] for name in metrics.outcomes.keys() - READABLE),
    decimals=0,
)
"""Number of unreadable answers."""
SUCCESS, FLIPPED, DRIFT = _measures_of_drift("overall")
LITERAL = _measures_of_drift("literal", "_literal")
"""S, F and ND of literal originals."""
IDIOMATIC = _measures_of_drift("idiomatic", "_idiomatic")
"""S, F and ND of idiomatic originals."""
CONFUSION: tuple[Measure[JamMetrics], ...] = tuple(
    Measure(name, partial(_confusion_class, name)) for name in Confusion.model_fields
)
"""AC, NC and MX."""
ORIGINALS = (
    *_measures_of_originals("", attrgetter("judged")),
    *_measures_of_originals("_literal", _literal_originals),
    *_measures_of_originals("_idiomatic", _idiomatic_originals),
)
"""Share and number of correctly judged originals, overall and by usage."""
TAGS = (
    _measure_of_f1("span", "originals"),
    _measure_of_f1("token", "originals"),
    _measure_of_f1("span", "variants"),
    _measure_of_f1("token", "variants"),
)
"""F1 of predicted tags."""


def match_predictions(
    sentences: Sequence[JamSentence], predictions: Sequence[IdiomPrediction], *, where: str | Path
) -> dict[str, IdiomPrediction]:
    """Check that each sentence has exactly one prediction; return the predictions by sentence id.

    `where` is the path of the predictions, for error messages.

    Raises:
        UserError: A sentence has no prediction or several, or a prediction has no sentence.
    """
    prediction_by_id = {prediction.id: prediction for prediction in predictions}
    if len(prediction_by_id) != len(predictions):
        raise UserError(
            "a sentence has two predictions", where=where, hint="delete the file and run again"
        )
    sentence_ids = {sentence.id for sentence in sentences}
    unmatched_ids = sorted(sentence_ids.symmetric_difference(prediction_by_id))
    if unmatched_ids:
        example = unmatched_ids[0]
        problem = "missing prediction" if example in sentence_ids else "unknown sentence"
        raise UserError(
            f"{problem} {example!r} ({len(unmatched_ids)} in total)",
            where=where,
            hint="run predictions and metrics on the same dataset",
        )
    return prediction_by_id


def judge(
    sentences: Sequence[JamSentence],
    predictions: Mapping[str, IdiomPrediction],
    *,
    scoring: Scoring = "paper",
) -> list[JudgedOriginal]:
    """Decide whether a run is right about each original and each variant.

    Originals are sorted by id. Variants whose original is missing are excluded.

    Args:
        sentences: Originals and variants.
        predictions: Predictions of the run, by sentence id.
        scoring: Scoring rule (see `is_correct`).
    """
    correct = {
        sentence.id: is_correct(predictions[sentence.id].idioms, sentence, scoring=scoring)
        for sentence in sentences
    }
    judged = []
    for original_id, group in sorted(by_original(sentences).items()):
        # A group without its original starts with a variant.
        original, *variants = group
        if original.is_original:
            judged.append(
                JudgedOriginal(
                    id=original_id,
                    is_figurative=original.is_figurative,
                    correct=correct[original.id],
                    variants={variant.id: correct[variant.id] for variant in variants},
                )
            )
    return judged


def jam_metrics(
    sentences: Sequence[JamSentence],
    predictions: Mapping[str, IdiomPrediction],
    run: RunIdentity,
    evidence: Evidence,
    *,
    scoring: Scoring,
    strict_majority: bool = False,
    resamples: int,
) -> JamMetrics:
    """Compute all metrics of one run.

    The bootstrap seed is fixed, so that identical runs have identical intervals.

    Args:
        sentences: Originals and variants in one language. Originals may lack variants.
        predictions: Predictions by sentence id.
        run: Model, setting and seed.
        evidence: Conditions and digests to store in the result.
        scoring: Scoring rule (see `is_correct`).
        strict_majority: Whether to apply `by_strict_majority` before computing AC, NC and MX.
        resamples: Number of bootstrap resamples.
    """
    judged = judge(sentences, predictions, scoring=scoring)
    judged_for_confusion = judged
    if strict_majority:
        voted_predictions = {
            sentence_id: by_strict_majority(prediction)
            for sentence_id, prediction in predictions.items()
        }
        judged_for_confusion = judge(sentences, voted_predictions, scoring=scoring)
    literal = [case for case in judged if not case.is_figurative]
    idiomatic = [case for case in judged if case.is_figurative]
    originals = [sentence for sentence in sentences if sentence.is_original]
    variants = [sentence for sentence in sentences if not sentence.is_original]
    outcomes = Counter(predictions[sentence.id].outcome for sentence in sentences)
    return JamMetrics(
        language=sentences[0].language,
        model=run.model,
        setting=run.setting,
        seed=run.seed,
        scoring=scoring,
        accuracy=accuracy(judged),
        accuracy_interval=accuracy_interval(judged, resamples=resamples, seed=0),
        overall=_drift_with_interval(judged, resamples),
        literal=_drift_with_interval(literal, resamples),
        idiomatic=_drift_with_interval(idiomatic, resamples),
        confusion=confusion_as_printed(judged_for_confusion),
        confusion_of_correct=confusion_of_correct(judged_for_confusion),
        confusion_of_variants=confusion_of_variants(judged_for_confusion),
        tagging_of_originals=_score_tags(originals, predictions),
        tagging_of_variants=_score_tags(variants, predictions) if variants else None,
        outcomes=dict(sorted(outcomes.items())),
        judged=judged,
        **evidence.of_measured,
    )


def _drift_with_interval(judged: Sequence[JudgedOriginal], resamples: int) -> Drift:
    return drift(judged, drift_interval(judged, resamples=resamples, seed=0))


def _score_tags(
    sentences: Sequence[JamSentence], predictions: Mapping[str, IdiomPrediction]
) -> TaggingScores:
    gold = [sentence.tags for sentence in sentences]
    predicted = [predicted_tags(sentence, predictions[sentence.id]) for sentence in sentences]
    return tagging_scores(gold, predicted)


def by_strict_majority(prediction: IdiomPrediction) -> IdiomPrediction:
    """Return a prediction with the idioms that a strict majority of its sampled answers names.

    As in the authors' code for Table 6, an idiom must be named more often than half the number of
    answers. An idiom that one answer repeats is counted repeatedly. An unreadable answer names no
    idiom. Idioms are compared in lowercase, without surrounding spaces. A prediction without
    readable answers is returned unchanged.
    """
    has_readable_answer = any(sample.idioms is not None for sample in prediction.samples)
    if not has_readable_answer:
        return prediction
    votes: Counter[str] = Counter()
    for sample in prediction.samples:
        votes.update(idiom.lower().strip() for idiom in sample.idioms or ())
    half = len(prediction.samples) / 2
    named_idioms = sorted(idiom for idiom, times_named in votes.items() if times_named > half)
    return prediction.model_copy(update={"outcome": "ok", "idioms": tuple(named_idioms)})


def predicted_tags(sentence: JamSentence, prediction: IdiomPrediction) -> Sequence[Tag]:
    """Return the tags that an encoder predicted, or the tags of the idioms that an LLM named."""
    if prediction.tags is not None:
        return prediction.tags
    return tags_of_idioms(sentence.tokens, prediction.idioms or ())


class NeutralMetrics(Measured):
    """Metrics of the neutral-context ablation (appendix G) for one run.

    The ablation takes the hard variants that the run misjudged, replaces their context with a
    neutral one, and counts how many of these neutral variants the model still misjudges.

    Attributes:
        language: Language of the run.
        model: Model of the run.
        setting: Setting of the run.
        seed: Seed of the run.
        confusing: Number of hard variants that the run misjudged.
        neutral: Number of neutral variants that were written for the misjudged hard variants.
        still_confused: Number of neutral variants that were misjudged.
        share: Fraction of neutral variants that were misjudged; null without neutral variants.
        interval: 95% bootstrap interval of the share over originals; null if the interval is
            undefined.
        outcomes: Number of neutral variants by prediction outcome.
    """

    language: str
    model: str
    setting: str
    seed: int
    confusing: int
    neutral: int
    still_confused: int
    share: float | None
    interval: Interval | None
    outcomes: dict[str, int]


NEUTRAL: tuple[Measure[NeutralMetrics], ...] = (
    Measure("neutral_confusing", attrgetter("confusing"), decimals=0),
    Measure("neutral_variants", attrgetter("neutral"), decimals=0),
    Measure("neutral_confused", attrgetter("still_confused"), decimals=0),
    share("neutral_share", attrgetter("share"), attrgetter("interval"), decimals=1),
)
"""Measures of appendix G."""


def neutral_metrics(
    neutral: Sequence[JamSentence],
    predictions: Mapping[str, IdiomPrediction],
    run: RunIdentity,
    evidence: Evidence,
    *,
    confusing: int,
    scoring: Scoring,
    resamples: int,
) -> NeutralMetrics:
    """Compute the metrics of the neutral-context ablation for one run.

    Args:
        neutral: Neutral variants.
        predictions: Predictions for the neutral variants, by sentence id.
        run: Run whose misjudged variants were rewritten.
        evidence: Conditions and digests to store in the result.
        confusing: Number of hard variants that the run misjudged.
        scoring: Scoring rule (see `is_correct`).
        resamples: Number of bootstrap resamples.
    """
    variants_by_original: Counter[str] = Counter()
    misjudged_by_original: Counter[str] = Counter()
    # The bootstrap interval depends on the order of the originals.
    for variant in sorted(neutral, key=lambda variant: variant.id):
        variants_by_original[variant.original_id] += 1
        if not is_correct(predictions[variant.id].idioms, variant, scoring=scoring):
            misjudged_by_original[variant.original_id] += 1
    still_confused = misjudged_by_original.total()
    interval = ratio_interval(
        [misjudged_by_original[original_id] for original_id in variants_by_original],
        list(variants_by_original.values()),
        resamples=resamples,
        seed=0,
    )
    return NeutralMetrics(
        **run._asdict(),
        confusing=confusing,
        neutral=len(neutral),
        still_confused=still_confused,
        share=still_confused / len(neutral) if neutral else None,
        interval=interval,
        outcomes=dict(Counter(predictions[variant.id].outcome for variant in neutral)),
        **evidence.of_measured,
    )
