"""Check the language of texts.

This module does not import the supported languages, so that a change to one language does not rerun
the datasets of other studies.
"""

from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from pieline.core.errors import UserError
from pieline.core.texts import refuse_above

CODES = ("en", "de", "it", "es")
"""ISO 639-1 codes of English, and of languages that an English file may contain by mistake."""
MOST_FOREIGN = 0.1
"""Maximum fraction of the texts in a file that are in another language."""
_FEWEST_LETTERS = 25
"""Minimum number of letters in a text whose language is checked."""
_FEWEST_FOREIGN = 2
"""Minimum number of texts in another language for an error."""
_EXAMPLE_LENGTH = 60
"""Maximum number of characters of a text in an error message."""


def is_in_language(text: str, code: str, codes: Sequence[str] = CODES) -> bool:
    """Return whether a text is in a language; True for texts that are too short to decide.

    Args:
        text: The text.
        code: ISO 639-1 code of the language.
        codes: Codes of the languages to choose from, including `code`.
    """
    letters = sum(character.isalpha() for character in text)
    if letters < _FEWEST_LETTERS:
        return True
    most_likely_code, _ = _load_identifier(*codes).classify(text)
    return bool(most_likely_code == code)


def check_language(
    texts: Iterable[tuple[str | Path, str]],
    code: str = "en",
    label: str = "English",
    codes: Sequence[str] = CODES,
) -> None:
    """Check the language of the texts in a file.

    Args:
        texts: Place in the file and content of each text.
        code: ISO 639-1 code of the expected language.
        label: Name of the expected language in the error message.
        codes: Codes of the languages to choose from, including `code`.

    Raises:
        UserError: More than a tenth of the texts, and at least two, are in other languages.
    """
    places_and_texts = list(texts)
    foreign = [
        (place, repr(text[:_EXAMPLE_LENGTH]))
        for place, text in places_and_texts
        if not is_in_language(text, code, codes)
    ]
    refuse_above(
        MOST_FOREIGN,
        foreign,
        len(places_and_texts),
        f"sentences are not in {label}",
        fewest=_FEWEST_FOREIGN,
        hint=f"use only sentences in {label}",
    )


@cache
def _load_identifier(*codes: str) -> Any:
    """Return a classifier of texts by language, for the languages with these ISO 639-1 codes."""
    # Import lazily: loading takes half a second, and few checks need it.
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE)
    try:
        identifier.set_languages(list(codes))
    except ValueError as error:
        raise UserError(
            f"py3langid cannot identify a language: {error}",
            hint="correct the code in pieline.languages, or use a language that py3langid knows",
        ) from None
    return identifier
