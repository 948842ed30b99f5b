"""Predictions of a fine-tuned tagger, in the form that language models' predictions have too."""

from collections.abc import Sequence

from pieline.studies.jam.bio import span_text, spans_of
from pieline.studies.jam.predictions.records import IdiomPrediction
from pieline.studies.jam.records import JamSentence
from pieline.studies.jam.training.tagger import Tagger


def predict(
    tagger: Tagger, sentences: Sequence[JamSentence], *, bfloat16: bool = False
) -> list[IdiomPrediction]:
    """Tags of each sentence, and the idioms that they mark, in order."""
    tags = tagger.tag([item.tokens for item in sentences], bfloat16=bfloat16)
    return [
        IdiomPrediction(
            id=item.id,
            outcome="ok",
            idioms=tuple(span_text(item.tokens, span) for span in spans_of(found)),
            tags=tuple(found),
        )
        for item, found in zip(sentences, tags, strict=True)
    ]
