"""Checks of ID10M's sentences that reject plausible mistakes."""

from collections.abc import Sequence
from pathlib import Path

from pieline.core.texts import check_texts, refuse_above
from pieline.languages.identification import check_language
from pieline.languages.registry import get_language
from pieline.languages.spelling import normalize
from pieline.studies.jam.bio import span_text
from pieline.studies.jam.raw.id10m import TaggedSentence

MOST_MISALIGNED = 0.1
"""Maximum share of tagged idioms that begin or end with punctuation, or end with a light word."""
_FEWEST_MISALIGNED = 2
_MOST_IDENTIFIED = 4000
"""Maximum number of sentences whose language is identified, which takes up to 1 ms each."""


def check_sentences(
    sentences: Sequence[TaggedSentence], *, language: str, path: str | Path
) -> None:
    """Check the sentences of an ID10M file.

    Raises:
        UserError: Too many sentences are damaged, repeated or in another language, or the tags do
            not seem to belong to their tokens.
    """
    texts = [(f"{path}:{item.line}", item.text) for item in sentences]
    check_texts(texts)
    check_language(texts[:: 1 + len(texts) // _MOST_IDENTIFIED], language)
    light_words = get_language(language).light_words
    misaligned, total = [], 0
    for item in sentences:
        for span in item.spans:
            total += 1
            first, last = (normalize(item.tokens[at]) for at in (span.start, span.end - 1))
            if not first or not last or last in light_words:
                idiom = span_text(item.tokens, span)
                misaligned.append((f"{path}:{item.line + span.start}", repr(idiom)))
    refuse_above(
        MOST_MISALIGNED,
        misaligned,
        total,
        "tagged idioms begin or end with punctuation, or end with a word such as an article",
        fewest=_FEWEST_MISALIGNED,
        hint="check that each tag is in the line of its token",
    )
