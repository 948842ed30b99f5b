"""Predict idioms with a fine-tuned tagger."""

from collections.abc import Iterable, Mapping, Sequence

from pieline.studies.jam.bio import (
    INSIDE,
    OUTSIDE,
    Span,
    Tag,
    span_text,
    spans_of,
    whitespace_word_spans,
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

    The form determines the words to tag, and whether an I tag without a B tag before it begins an
    idiom (see `FormDetails`).
    """
    words_of_sentences = [_words(item, form) for item in sentences]
    texts = []
    for item, words in zip(sentences, words_of_sentences, strict=True):
        texts.append([span_text(item.tokens, word) for word in words])
    tags_of_sentences = tagger.tag(texts, drop_stray_tags=FORMS[form].drop_stray_tags)
    predictions = []
    for item, words, word_tags in zip(
        sentences, words_of_sentences, tags_of_sentences, strict=True
    ):
        tags = _tags_of_tokens(words, word_tags)
        idioms = tuple(span_text(item.tokens, span) for span in spans_of(tags))
        predictions.append(
            IdiomPrediction(id=item.id, outcome="ok", idioms=idioms, tags=tuple(tags))
        )
    return predictions


def _words(sentence: JamSentence, form: TrainingForm) -> list[Span]:
    """Return the token spans of the words to tag."""
    if FORMS[form].input == "whitespace":
        return whitespace_word_spans(sentence.tokens)
    return [Span(number, number + 1) for number in range(len(sentence.tokens))]


def _tags_of_tokens(words: Sequence[Span], word_tags: Sequence[Tag]) -> list[Tag]:
    """Return the tag of each token: the first has its word's tag, the others continue it."""
    tags: list[Tag] = []
    for (start, end), tag in zip(words, word_tags, strict=True):
        continuation = OUTSIDE if tag == OUTSIDE else INSIDE
        tags.append(tag)
        tags += [continuation] * (end - start - 1)
    return tags


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
