"""Decide whether a model identified a PIE, as the basis of accuracy and negative drift."""

from collections.abc import Sequence
from itertools import product
from typing import Literal

from pieline.languages.matching import matches_pie
from pieline.languages.spelling import normalize
from pieline.studies.jam.bio import OUTSIDE, Span, Tag, spans_of, tags_of
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
    or is contained in, one of the sentence's `true_idioms`, both lowercased and stripped, so even
    "" and "a" can be right. Unreadable predictions count as naming no idiom.

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
    pieces = [normalize(token).replace(" ", "") for token in tokens]
    starts, position = {}, 0
    for number, piece in enumerate(pieces):
        if piece:
            starts[position] = number
            position += len(piece)
    text = "".join(pieces)
    ends = {start + len(pieces[number]): number + 1 for start, number in starts.items()}
    tags: list[Tag] = [OUTSIDE] * len(tokens)
    for idiom in idioms:
        target = normalize(idiom).replace(" ", "")
        place = text.find(target) if target else -1
        while place >= 0 and not (place in starts and place + len(target) in ends):
            place = text.find(target, place + 1)
        if place < 0:
            continue
        span = Span(starts[place], ends[place + len(target)])
        if all(tag == OUTSIDE for tag in tags[span.start : span.end]):
            tags = tags_of([*spans_of(tags), span], len(tokens))
    return tags
