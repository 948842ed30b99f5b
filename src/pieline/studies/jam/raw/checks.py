"""Reject ID10M sentences with signs of a mistake, such as shifted tags or another language."""

from collections.abc import Collection, Sequence
from pathlib import Path

from pieline.core.texts import check_texts, covers, refuse_above
from pieline.languages.identification import check_language
from pieline.languages.spelling import normalize
from pieline.studies.jam.bio import span_text
from pieline.studies.jam.raw.id10m import TaggedSentence

MOST_MISALIGNED = 0.1
"""Maximum share of tagged idioms that begin or end with punctuation, or end with a light word."""
_FEWEST_MISALIGNED = 2
MOST_WHOLE = 0.2
"""Maximum share of tagged idioms that cover three quarters of their sentence."""
_MOST_IDENTIFIED = 4000
"""Maximum number of sentences whose language is identified, which takes up to 1 ms each."""


def check_sentences(
    sentences: Sequence[TaggedSentence],
    *,
    path: str | Path,
    code: str,
    label: str,
    codes: Sequence[str],
    light_words: Collection[str] = (),
) -> None:
    """Check the sentences of an ID10M file.

    Facts about the language are arguments, because jobs that prepare training data must not depend
    on the code of all languages.

    Args:
        sentences: Sentences with tagged idioms.
        path: Path of the file, for error messages.
        code: ISO 639-1 code of the language.
        label: Name of the language, for error messages.
        codes: Codes of the languages to choose from when a text's language is identified.
        light_words: Words with which no idiom ends.

    Raises:
        UserError: Too many sentences are damaged, repeated, in another language or tagged as a
            whole, or the tags do not seem to belong to their tokens.
    """
    texts = [(f"{path}:{item.line}", item.text) for item in sentences]
    check_texts(texts)
    check_language(texts[:: 1 + len(texts) // _MOST_IDENTIFIED], code, label, codes)
    misaligned, whole, total = [], [], 0
    for item in sentences:
        for span in item.spans:
            total += 1
            idiom = span_text(item.tokens, span)
            first = normalize(item.tokens[span.start])
            last = normalize(item.tokens[span.end - 1])
            if not first or not last or last in light_words:
                misaligned.append((f"{path}:{item.line + span.start}", repr(idiom)))
            if covers(idiom, item.text):
                whole.append((f"{path}:{item.line + span.start}", repr(idiom)))
    refuse_above(
        MOST_MISALIGNED,
        misaligned,
        total,
        "tagged idioms begin or end with punctuation, or end with a word such as an article",
        fewest=_FEWEST_MISALIGNED,
        hint="check that each tag is in the line of its token",
    )
    refuse_above(
        MOST_WHOLE,
        whole,
        total,
        "tagged idioms are whole sentences",
        fewest=_FEWEST_MISALIGNED,
        hint="tag only the words of the idiom",
    )
