"""Whether a model identified a PIE: the one decision behind every number of ID10M-JAM."""

from collections.abc import Sequence
from itertools import product
from typing import Literal

from pieline.languages.matching import matches_pie
from pieline.languages.spelling import normalise
from pieline.studies.jam.bio import OUTSIDE, Span, Tag, spans_of, tags_of
from pieline.studies.jam.records import TaggedRecord

Scoring = Literal["paper", "released"]


def is_correct(
    idioms: Sequence[str] | None, sentence: TaggedRecord, *, scoring: Scoring = "paper"
) -> bool:
    """Whether a prediction is right about the PIE of a sentence; for language models and encoders.

    `paper` (section 4.1): right if the PIE is named exactly when it is figurative, whatever else
    is named. A prediction that could not be read is never right: it says neither.

    `released` (the analysis published with ID10M-JAM): on a literal sentence any named idiom is
    wrong, whichever it is; on a figurative one an idiom counts if, both lowercased and stripped, it
    contains one of the sentence's `true_idioms` or is contained in one, so that "" and "a" count. A
    prediction that could not be read counts as one that names nothing, which makes it right on
    literal sentences.

    Args:
        idioms: named by the prediction; None where it could not be read.
        sentence: what was judged.
        scoring: which of the two.
    """
    if scoring == "released":
        if not sentence.is_figurative:
            return not idioms
        # The field PIE, which the release has as well, is spelled otherwise ("zur  Genüge").
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
    """BIO tags that mark idioms named as text: each where it first stands in whole tokens.

    Case, punctuation and spacing do not matter. An idiom that does not stand in the sentence as it
    was named marks nothing, and neither does one that overlaps an earlier one.

    Args:
        tokens: of the sentence.
        idioms: as a language model spells them.
    """
    pieces = [normalise(token).replace(" ", "") for token in tokens]
    starts, position = {}, 0
    for number, piece in enumerate(pieces):
        if piece:
            starts[position] = number
            position += len(piece)
    text = "".join(pieces)
    ends = {start + len(pieces[number]): number + 1 for start, number in starts.items()}
    tags: list[Tag] = [OUTSIDE] * len(tokens)
    for idiom in idioms:
        wanted = normalise(idiom).replace(" ", "")
        place = text.find(wanted) if wanted else -1
        while place >= 0 and not (place in starts and place + len(wanted) in ends):
            place = text.find(wanted, place + 1)
        if place < 0:
            continue
        span = Span(starts[place], ends[place + len(wanted)])
        if all(tag == OUTSIDE for tag in tags[span.start : span.end]):
            tags = tags_of([*spans_of(tags), span], len(tokens))
    return tags
