"""Predict idioms with a fine-tuned tagger."""

from collections.abc import Iterable, Mapping, Sequence

from pieline.studies.jam.bio import (
    INSIDE,
    OUTSIDE,
    Span,
    Tag,
    span_text,
    spans_of,
    white_space_words,
)
from pieline.studies.jam.predictions.records import IdiomPrediction
from pieline.studies.jam.records import JamSentence
from pieline.studies.jam.training.settings import FORMS, TrainingForm
from pieline.studies.jam.training.tagger import Tagger


def predict(
    tagger: Tagger,
    sentences: Sequence[JamSentence],
    *,
    form: TrainingForm = "paper",
) -> list[IdiomPrediction]:
    """Return one prediction per sentence, in order: BIO tags and the idioms that they mark.

    The form determines the words to tag and whether an I tag without a B tag before it begins an
    idiom (see `FormDetails`). The first token of a word gets the tag of the
    word; its other tokens get I, or O if the tag of the word is O.
    """
    places = [
        white_space_words(item.tokens)
        if FORMS[form].input == "whitespace"
        else [Span(number, number + 1) for number in range(len(item.tokens))]
        for item in sentences
    ]
    texts = [
        [span_text(item.tokens, place) for place in sentence_places]
        for item, sentence_places in zip(sentences, places, strict=True)
    ]
    predictions = []
    tagged = tagger.tag(texts, drop_unbegun=FORMS[form].drop_unbegun)
    for item, sentence_places, predicted in zip(sentences, places, tagged, strict=True):
        tags: list[Tag] = []
        for (start, end), tag in zip(sentence_places, predicted, strict=True):
            tags += [tag, *[OUTSIDE if tag == OUTSIDE else INSIDE] * (end - start - 1)]
        idioms = tuple(span_text(item.tokens, span) for span in spans_of(tags))
        predictions.append(
            IdiomPrediction(id=item.id, outcome="ok", idioms=idioms, tags=tuple(tags))
        )
    return predictions


def predict_by_fold(
    taggers: Iterable[Tagger],
    sentences: Sequence[JamSentence],
    folds: Mapping[str, int],
    *,
    form: TrainingForm = "paper",
) -> list[IdiomPrediction]:
    """Tag the sentences of each fold with the fold's tagger; return predictions in input order.

    Args:
        taggers: One tagger per fold, in order of fold.
        sentences: Sentences to tag.
        folds: Fold of each original by id.
        form: Form of the training (see `predict`).
    """
    predictions: dict[str, IdiomPrediction] = {}
    for fold, tagger in enumerate(taggers):
        held_out = [item for item in sentences if folds[item.original_id] == fold]
        predictions |= {item.id: item for item in predict(tagger, held_out, form=form)}
    return [predictions[item.id] for item in sentences]
