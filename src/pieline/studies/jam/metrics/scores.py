"""Compute the metric file of one ID10M-JAM run: one model, setting and seed."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain
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


def _drift(usage: str, ending: str = "") -> tuple[Measure[JamMetrics], ...]:
    """Return S, F and ND of the originals of a usage."""
    part = attrgetter(usage)
    return (
        Measure(f"success{ending}", lambda item: part(item).success),
        Measure(f"flipped{ending}", lambda item: part(item).flipped),
        share(
            f"negative_drift{ending}",
            lambda item: part(item).negative_drift,
            lambda item: part(item).interval,
            better="low",
            unknown="no such original was judged correctly, so no variant could drift",
        ),
    )


def _confusion_class(name: str, item: JamMetrics) -> int:
    """Return AC, NC or MX as in Table 6."""
    # The paper counts variants for encoders and originals for language models.
    is_encoder = item.setting in (FINE_TUNED, *ADDED)
    confusion = item.confusion_of_variants if is_encoder else item.confusion
    return int(getattr(confusion, name))


def _right(
    ending: str, originals: Callable[[JamMetrics], list[JudgedOriginal]]
) -> tuple[Measure[JamMetrics], ...]:
    """Return the share and the number of correctly judged originals, among the given ones."""
    return (
        share(
            f"accuracy{ending}",
            lambda item: accuracy(originals(item)),
            unknown="there is no such original",
        ),
        Measure(f"right{ending}", lambda item: sum(case.correct for case in originals(item))),
    )


def _literal_originals(item: JamMetrics) -> list[JudgedOriginal]:
    return [case for case in item.judged if not case.is_figurative]


def _idiomatic_originals(item: JamMetrics) -> list[JudgedOriginal]:
    return [case for case in item.judged if case.is_figurative]


def _f1(of: str, sentences: str) -> Measure[JamMetrics]:
    """Return F1 of predicted tags: `of` is span or token, `sentences` originals or variants."""
    scores = attrgetter(f"tagging_of_{sentences}")
    return share(
        f"{of}_f1_{sentences}",
        lambda item: scores(item) and getattr(scores(item), f"{of}_f1"),
        unknown="there are no hard variants",
    )


ACCURACY: Measure[JamMetrics] = share(
    "accuracy", attrgetter("accuracy"), attrgetter("accuracy_interval")
)
UNREADABLE = Measure[JamMetrics](
    "unreadable",
    lambda item: sum(item.outcomes[name] for name in item.outcomes.keys() - READABLE),
    decimals=0,
)
"""Number of unreadable answers."""
SUCCESS, FLIPPED, DRIFT = _drift("overall")
LITERAL, IDIOMATIC = _drift("literal", "_literal"), _drift("idiomatic", "_idiomatic")
"""S, F and ND by usage."""
CONFUSION: tuple[Measure[JamMetrics], ...] = tuple(
    Measure(name, partial(_confusion_class, name)) for name in Confusion.model_fields
)
"""AC, NC and MX."""
ORIGINALS = (
    *_right("", attrgetter("judged")),
    *_right("_literal", _literal_originals),
    *_right("_idiomatic", _idiomatic_originals),
)
"""Correctly judged originals, by usage."""
TAGS = tuple(_f1(of, texts) for texts in ("originals", "variants") for of in ("span", "token"))
"""F1 of predicted tags."""


def match_predictions(
    sentences: Sequence[JamSentence], predictions: Sequence[IdiomPrediction], *, where: str | Path
) -> dict[str, IdiomPrediction]:
    """Return predictions by sentence id after checking that there is exactly one per sentence.

    Raises:
        UserError: Sentences and predictions do not correspond one to one.
    """
    by_id = {item.id: item for item in predictions}
    if len(by_id) != len(predictions):
        raise UserError(
            "a sentence has two predictions", where=where, hint="delete the file and run again"
        )
    sentence_ids = {item.id for item in sentences}
    if missing := sorted(sentence_ids ^ by_id.keys()):
        problem = "missing prediction" if missing[0] in sentence_ids else "unknown sentence"
        raise UserError(
            f"{problem} {missing[0]!r} ({len(missing)} in total)",
            where=where,
            hint="run predictions and metrics on the same dataset",
        )
    return by_id


def judge(
    sentences: Sequence[JamSentence],
    predictions: Mapping[str, IdiomPrediction],
    *,
    scoring: Scoring = "paper",
) -> list[JudgedOriginal]:
    """Judge each original and its variants, ordered by original id.

    Variants whose original is missing are excluded.
    """
    correct = {
        item.id: is_correct(predictions[item.id].idioms, item, scoring=scoring)
        for item in sentences
    }
    judged = []
    for name, group in sorted(by_original(sentences).items()):
        original, variants = group[0], group[1:]
        if original.is_original:
            judged.append(
                JudgedOriginal(
                    id=name,
                    is_figurative=original.is_figurative,
                    correct=correct[original.id],
                    variants={item.id: correct[item.id] for item in variants},
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

    `sentences` must be in one language and include originals, which may lack variants. The
    bootstrap seed is fixed, so identical runs get identical intervals. With `strict_majority`, the
    confusion classes are based on `by_strict_majority`.
    """
    judged = judge(sentences, predictions, scoring=scoring)
    classified = judged
    if strict_majority:
        voted = {name: by_strict_majority(item) for name, item in predictions.items()}
        classified = judge(sentences, voted, scoring=scoring)
    literal = [case for case in judged if not case.is_figurative]
    idiomatic = [case for case in judged if case.is_figurative]
    originals = [item for item in sentences if item.is_original]
    variants = [item for item in sentences if not item.is_original]
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
        confusion=confusion_as_printed(classified),
        confusion_of_correct=confusion_of_correct(classified),
        confusion_of_variants=confusion_of_variants(classified),
        tagging_of_originals=_tagging(originals, predictions),
        tagging_of_variants=_tagging(variants, predictions) if variants else None,
        outcomes=dict(sorted(Counter(predictions[item.id].outcome for item in sentences).items())),
        judged=judged,
        **evidence.of_measured,
    )


def _drift_with_interval(judged: Sequence[JudgedOriginal], resamples: int) -> Drift:
    return drift(judged, drift_interval(judged, resamples=resamples, seed=0))


def _tagging(
    sentences: Sequence[JamSentence], predictions: Mapping[str, IdiomPrediction]
) -> TaggingScores:
    gold = [item.tags for item in sentences]
    predicted = [predicted_tags(item, predictions[item.id]) for item in sentences]
    return tagging_scores(gold, predicted)


def by_strict_majority(prediction: IdiomPrediction) -> IdiomPrediction:
    """Return the prediction that follows from a strict majority of all its answers.

    As in the authors' code for Table 6, the number of times that an idiom is named must exceed
    half the number of answers. Repetitions in one answer count, and unreadable answers name no
    idiom. Idioms are compared in lowercase, without surrounding space. A prediction without
    readable answers is unchanged.
    """
    if not any(sample.idioms is not None for sample in prediction.samples):
        return prediction
    texts = chain.from_iterable(sample.idioms or () for sample in prediction.samples)
    votes = Counter(text.lower().strip() for text in texts)
    answers = len(prediction.samples)
    named = tuple(sorted(text for text, number in votes.items() if 2 * number > answers))
    return prediction.model_copy(update={"outcome": "ok", "idioms": named})


def predicted_tags(sentence: JamSentence, prediction: IdiomPrediction) -> Sequence[Tag]:
    """Return the predicted tags, or tags for the named idioms if no tags were predicted."""
    if prediction.tags is not None:
        return prediction.tags
    return tags_of_idioms(sentence.tokens, prediction.idioms or ())


class NeutralMetrics(Measured):
    """Metrics of the neutral-context ablation: how many confusing variants remain confusing.

    Attributes:
        language: Language of the confused run.
        model: Model of the confused run.
        setting: Setting of the confused run.
        seed: Seed of the confused run.
        confusing: Number of hard variants that the run misjudged.
        neutral: Number of confusing variants for which a neutral variant was written.
        still_confused: Number of neutral variants that were misjudged.
        share: Fraction of neutral variants that were misjudged; null if there are none.
        interval: 95% bootstrap interval of the share over originals; null if it is undefined.
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
    """Score predictions (by sentence id) for the neutral variants of a run's confusing variants."""
    wrong: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for item in sorted(neutral, key=lambda item: item.id):
        right = is_correct(predictions[item.id].idioms, item, scoring=scoring)
        total[item.original_id] += 1
        wrong[item.original_id] += not right
    still_confused = wrong.total()
    return NeutralMetrics(
        **run._asdict(),
        confusing=confusing,
        neutral=len(neutral),
        still_confused=still_confused,
        share=still_confused / len(neutral) if neutral else None,
        interval=ratio_interval(
            [wrong[name] for name in total], list(total.values()), resamples=resamples, seed=0
        ),
        outcomes=dict(Counter(predictions[item.id].outcome for item in neutral)),
        **evidence.of_measured,
    )
