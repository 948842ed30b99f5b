"""Decide whether a model identified a PIE, as the basis of accuracy and negative drift."""

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

    `paper` (section 4.1): A prediction for a figurative sentence is right if it names the PIE, and
    a prediction for a literal sentence is right if it does not. Other named idioms do not matter.
    Unreadable predictions are never right.

    `released` (the analysis published with ID10M-JAM): A prediction for a literal sentence is right
    if it names no idiom. A prediction for a figurative sentence is right if a named idiom contains,
    or is contained in, one of the sentence's `true_idioms`. Both texts are lowercased and stripped,
    so even "" and "a" can be right. Unreadable predictions count as naming no idiom.

    Args:
        idioms: Idioms named by the prediction; None if it was unreadable.
        sentence: Sentence with the gold PIE.
        scoring: Scoring rule.
    """
    if scoring == "released":
        if not sentence.is_figurative:
            return not idioms
        # The release spells its field PIE differently from `true_idioms` ("zur  Genüge").
        pairs = product(idioms or (), sentence.true_idioms)
        return any(_contains_other(idiom, pie) for idiom, pie in pairs)
    if idioms is None:
        return False
    named = any(
        matches_pie(idiom, pie, language=sentence.language)
        for idiom, pie in product(idioms, sentence.pies)
    )
    return named == sentence.is_figurative


def _contains_other(one: str, other: str) -> bool:
    one, other = one.strip().lower(), other.strip().lower()
    return one in other or other in one


def tags_of_idioms(tokens: Sequence[str], idioms: Sequence[str]) -> list[Tag]:
    """Return BIO tags that mark idioms at their first occurrence in complete tokens.

    Case, punctuation and spacing are ignored. Idioms that do not occur, or overlap an earlier one,
    are not marked.

    Args:
        tokens: Tokens of the sentence.
        idioms: Idioms as named by a language model.
    """
    pieces = [_letters(token) for token in tokens]
    spans: list[Span] = []
    for idiom in idioms:
        span = _first_occurrence(_letters(idiom), pieces)
        if span and not any(_overlap(span, other) for other in spans):
            spans.append(span)
    return tags_of(spans, len(tokens))


def _first_occurrence(target: str, pieces: Sequence[str]) -> Span | None:
    """Return the span of the first pieces that together spell the target; None if there are none.

    Empty pieces (punctuation) may be inside the span, but it neither begins nor ends with them.
    """
    if not target:
        return None
    for start, first in enumerate(pieces):
        if not first:
            continue
        spelled = ""
        for end, piece in enumerate(pieces[start:], start=start + 1):
            spelled += piece
            if spelled == target:
                return Span(start, end)
            if not target.startswith(spelled):
                break
    return None


def _letters(text: str) -> str:
    return normalize(text).replace(" ", "")


def _overlap(one: Span, other: Span) -> bool:
    return one.start < other.end and other.start < one.end
