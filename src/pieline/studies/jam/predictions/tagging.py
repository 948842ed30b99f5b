"""Predict idioms with fine-tuned taggers."""

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
    """Return the predicted BIO tags and idioms of each sentence, in the order of the sentences.

    The form determines which words are tagged, and whether stray I tags count (see `FormDetails`).
    """
    spans_by_sentence = [_word_spans(sentence, form) for sentence in sentences]
    words_by_sentence = []
    for sentence, spans in zip(sentences, spans_by_sentence, strict=True):
        words_by_sentence.append([span_text(sentence.tokens, span) for span in spans])
    tags_by_sentence = tagger.tag(words_by_sentence, drop_stray_tags=FORMS[form].drop_stray_tags)
    predictions = []
    for sentence, spans, tags in zip(sentences, spans_by_sentence, tags_by_sentence, strict=True):
        predictions.append(_make_prediction(sentence, spans, tags))
    return predictions


def _word_spans(sentence: JamSentence, form: TrainingForm) -> list[Span]:
    """Return the token span of each word that a tagger tags in a sentence.

    The words are separated by white space or, in the form `paper`, are the tokens of the dataset.
    """
    if FORMS[form].input == "whitespace":
        return whitespace_word_spans(sentence.tokens)
    return [Span(index, index + 1) for index in range(len(sentence.tokens))]


def _make_prediction(
    sentence: JamSentence, word_spans: Sequence[Span], word_tags: Sequence[Tag]
) -> IdiomPrediction:
    """Return the prediction for a sentence, given the token span and the tag of each word."""
    tags = _to_token_tags(word_spans, word_tags)
    idioms = tuple(span_text(sentence.tokens, span) for span in spans_of(tags))
    return IdiomPrediction(id=sentence.id, outcome="ok", idioms=idioms, tags=tuple(tags))


def _to_token_tags(word_spans: Sequence[Span], word_tags: Sequence[Tag]) -> list[Tag]:
    """Return the tag of each token, given the token span and the tag of each word.

    The first token of a word gets the word's tag. The other tokens get I, or O if the word has O.
    """
    token_tags: list[Tag] = []
    for span, word_tag in zip(word_spans, word_tags, strict=True):
        other_tag = OUTSIDE if word_tag == OUTSIDE else INSIDE
        token_tags.append(word_tag)
        token_tags += [other_tag] * (span.end - span.start - 1)
    return token_tags


def predict_by_fold(
    taggers: Iterable[Tagger],
    sentences: Sequence[JamSentence],
    folds: Mapping[str, int],
    *,
    form: TrainingForm = "paper",
) -> list[IdiomPrediction]:
    """Return the predictions for all sentences, in the order of the sentences.

    Each sentence is tagged by the tagger of its original's fold.

    Args:
        taggers: One tagger per fold, in the order of the folds.
        sentences: Sentences to tag.
        folds: Fold (from 0) of each original, by the original's id.
        form: Form of the training and tagging (see `predict`).
    """
    prediction_by_id: dict[str, IdiomPrediction] = {}
    for fold, tagger in enumerate(taggers):
        sentences_of_fold = [
            sentence for sentence in sentences if folds[sentence.original_id] == fold
        ]
        for prediction in predict(tagger, sentences_of_fold, form=form):
            prediction_by_id[prediction.id] = prediction
    return [prediction_by_id[sentence.id] for sentence in sentences]
