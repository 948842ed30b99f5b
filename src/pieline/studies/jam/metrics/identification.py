"""Decide whether a model identified a PIE, for accuracy and negative drift."""

from collections.abc import Sequence
from itertools import product
from typing import Literal

from pieline.languages.matching import matches_pie
from pieline.languages.spelling import normalize
from pieline.studies.jam.bio import Span, Tag, tags_of
from pieline.studies.jam.records import TaggedRecord

Scoring = Literal["paper", "released"]


def is_correct(
    idioms: Sequence[str] | None, sentence: TaggedRecord, *, scoring: Scoring = "paper"
) -> bool:
    """Return whether a prediction is right about the PIE of a sentence.

    With the scoring rule `paper` (section 4.1), a prediction for a figurative sentence is right if
    the prediction names the PIE. A prediction for a literal sentence is right if the prediction
    does not name the PIE. Other named idioms do not matter. Unreadable predictions are never right.

    The scoring rule `released` is that of the authors' code (see `_is_correct_in_authors_code`).

    Args:
        idioms: Idioms named by the prediction; None if the prediction was unreadable.
        sentence: Sentence with the gold PIE.
        scoring: Scoring rule.
    """
    if scoring == "released":
        return _is_correct_in_authors_code(idioms or (), sentence)
    if idioms is None:
        return False
    names_pie = any(
        matches_pie(idiom, pie, language=sentence.language)
        for idiom, pie in product(idioms, sentence.pies)
    )
    return names_pie == sentence.is_figurative


def _is_correct_in_authors_code(idioms: Sequence[str], sentence: TaggedRecord) -> bool:
    """Return whether the authors' code counts a prediction as right about a sentence.

    A prediction for a literal sentence is right if it names no idiom. A prediction for a figurative
    sentence is right if a named idiom contains one of the sentence's `true_idioms`, or is contained
    in one. Even the idioms "" and "a" can therefore be right. The authors' code treats unreadable
    predictions as predictions that name no idiom.
    """
    if not sentence.is_figurative:
        return not idioms
    # The public data spells its field PIE differently from `true_idioms` ("zur  Genüge").
    return any(
        _one_contains_other(idiom, true_idiom)
        for idiom, true_idiom in product(idioms, sentence.true_idioms)
    )


def _one_contains_other(first: str, second: str) -> bool:
    """Return whether one text contains the other, ignoring case and surrounding spaces."""
    first, second = first.strip().lower(), second.strip().lower()
    return first in second or second in first


def tags_of_idioms(tokens: Sequence[str], idioms: Sequence[str]) -> list[Tag]:
    """Return the BIO tags of a sentence, given the idioms that a language model named.

    The first occurrence of each idiom is tagged. An occurrence consists of complete tokens; case,
    punctuation and spacing do not matter. Idioms that do not occur are ignored, and so are idioms
    that overlap an idiom named earlier.

    Args:
        tokens: Tokens of the sentence.
        idioms: Idioms as named by a language model.
    """
    letters_of_tokens = [_letters(token) for token in tokens]
    spans: list[Span] = []
    for idiom in idioms:
        span = _first_occurrence(_letters(idiom), letters_of_tokens)
        if span and not any(_overlap(span, earlier) for earlier in spans):
            spans.append(span)
    return tags_of(spans, len(tokens))


def _first_occurrence(letters: str, letters_of_tokens: Sequence[str]) -> Span | None:
    """Return the span of the first consecutive tokens that spell `letters`; None if none do.

    Tokens without letters (punctuation) may be inside the span, but not at its ends.
    """
    if not letters:
        return None
    for start, first_letters in enumerate(letters_of_tokens):
        if not first_letters:
            continue
        spelled = ""
        for end, token_letters in enumerate(letters_of_tokens[start:], start=start + 1):
            spelled += token_letters
            if spelled == letters:
                return Span(start, end)
            if not letters.startswith(spelled):
                break
    return None


def _letters(text: str) -> str:
    """Return a normalized text (see `normalize`) without spaces."""
    return normalize(text).replace(" ", "")


def _overlap(first: Span, second: Span) -> bool:
    return first.start < second.end and second.start < first.end
