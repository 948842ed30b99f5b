"""Tags of an encoder that reproduce the printed numbers of ID10M-JAM."""

from collections.abc import Sequence
from pathlib import Path

from pieline.studies.jam.bio import span_text, tags_of
from pieline.studies.jam.predictions.records import IdiomPrediction
from pieline.studies.jam.records import JamSentence
from rehearsal.answers.jam import printed_jam
from rehearsal.answers.printed_runs import FINE_TUNED
from rehearsal.answers.texts import pie_span


def printed_tags(
    sentences: Sequence[JamSentence], published: Path, *, model: str, seed: int
) -> list[IdiomPrediction]:
    """Return predictions of an encoder that reproduce its printed numbers (`PrintedJam.right`).

    Args:
        sentences: Sentences of the dataset in one language, or only neutral variants.
        published: Folder of the printed numbers.
        model: Printed name of the model.
        seed: Seed of the run.

    Raises:
        ValueError: A sentence whose PIE must be tagged does not contain the PIE.
    """
    if not sentences:
        return []
    key = FINE_TUNED, model, sentences[0].language
    right = printed_jam(published).right(sentences, key, seed)
    return [_prediction(item, names_pie=right[item.id] == item.is_figurative) for item in sentences]


def _prediction(sentence: JamSentence, *, names_pie: bool) -> IdiomPrediction:
    span = pie_span(sentence) if names_pie else None
    if names_pie and span is None:
        raise ValueError(f"{sentence.id} does not contain its PIE")
    spans = [span] if span else []
    return IdiomPrediction(
        id=sentence.id,
        outcome="ok",
        idioms=tuple(span_text(sentence.tokens, span) for span in spans),
        tags=tuple(tags_of(spans, len(sentence.tokens))),
    )
