"""Reject ID10M sentences with signs of a mistake, such as shifted tags or another language."""

from collections.abc import Collection, Sequence
from pathlib import Path

from pieline.core.texts import check_texts, covers, refuse_above
from pieline.languages.identification import check_language
from pieline.languages.spelling import normalize
from pieline.studies.jam.bio import span_text
from pieline.studies.jam.raw.id10m import TaggedSentence

MAX_MISALIGNED = 0.1
"""Maximum share of tagged idioms that begin or end with punctuation, or end with a light word."""
MAX_WHOLE = 0.2
"""Maximum share of tagged idioms that cover at least three quarters of their sentence."""
_FEWEST_FAULTS = 2
"""Minimum number of faulty idioms for which a file is rejected."""
_MAX_IDENTIFIED = 4000
"""Maximum number of sentences whose language is identified; each sentence takes up to 1 ms."""


def check_sentences(
    sentences: Sequence[TaggedSentence],
    *,
    path: str | Path,
    code: str,
    label: str,
    codes: Sequence[str],
    light_words: Collection[str] = (),
) -> None:
    """Check that the sentences of an ID10M file are plausible.

    The caller passes the facts about the language, because jobs that prepare training data must not
    depend on the code of all languages.

    Args:
        sentences: Sentences with tagged idioms.
        path: Path of the file, for error messages.
        code: ISO 639-1 code of the language.
        label: Name of the language, for error messages.
        codes: Codes of all languages that the identification of a language can return.
        light_words: Words with which no idiom ends, such as articles.

    Raises:
        UserError: Too many sentences are damaged, repeated, in another language or tagged as a
            whole, or the tags do not seem to belong to their tokens.
    """
    texts = [(f"{path}:{sentence.line}", sentence.text) for sentence in sentences]
    check_texts(texts)
    sampling_step = 1 + len(texts) // _MAX_IDENTIFIED
    check_language(texts[::sampling_step], code, label, codes)
    _check_idioms(sentences, path, light_words)


def _check_idioms(
    sentences: Sequence[TaggedSentence], path: str | Path, light_words: Collection[str]
) -> None:
    """Raise a `UserError` if too many tagged idioms are misaligned or cover a whole sentence.

    An idiom is misaligned if it begins or ends with punctuation, or ends with one of `light_words`.
    """
    idiom_count = 0
    misaligned = []
    whole_sentences = []
    for sentence in sentences:
        for span in sentence.spans:
            idiom_count += 1
            idiom = span_text(sentence.tokens, span)
            line_and_idiom = (f"{path}:{sentence.line + span.start}", repr(idiom))
            first_word = normalize(sentence.tokens[span.start])
            last_word = normalize(sentence.tokens[span.end - 1])
            # The normalized form of punctuation is empty.
            if not first_word or not last_word or last_word in light_words:
                misaligned.append(line_and_idiom)
            if covers(idiom, sentence.text):
                whole_sentences.append(line_and_idiom)
    refuse_above(
        MAX_MISALIGNED,
        misaligned,
        idiom_count,
        "tagged idioms begin or end with punctuation, or end with a word such as an article",
        fewest=_FEWEST_FAULTS,
        hint="check that each tag is in the line of its token",
    )
    refuse_above(
        MAX_WHOLE,
        whole_sentences,
        idiom_count,
        "tagged idioms are whole sentences",
        fewest=_FEWEST_FAULTS,
        hint="tag only the words of the idiom",
    )
