"""Identify the language of a text among given languages.

The module does not read the supported languages, so that a change to one language does not rerun
the datasets of other studies.
"""

from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from pieline.core.errors import UserError
from pieline.core.texts import refuse_above

CODES = ("en", "de", "it", "es")
"""ISO 639-1 codes of the languages that an English file may contain by mistake, and of English."""
MOST_FOREIGN = 0.1
"""Maximum share of the texts in a file that may be in another language."""
_FEWEST_LETTERS = 25
_FEWEST_FOREIGN = 2


def is_in_language(text: str, code: str, codes: Sequence[str] = CODES) -> bool:
    """Return whether a text is in a language; always True for texts with fewer than 25 letters.

    Args:
        text: The text.
        code: ISO 639-1 code of the language.
        codes: Codes of the languages to choose from, including `code`.
    """
    if sum(letter.isalpha() for letter in text) < _FEWEST_LETTERS:
        return True
    found, _ = _identifier(*codes).classify(text)
    return bool(found == code)


def check_language(
    texts: Iterable[tuple[str | Path, str]],
    code: str = "en",
    label: str = "English",
    codes: Sequence[str] = CODES,
) -> None:
    """Check the language of the texts in a file, each with its place in the file.

    Args:
        texts: Places and texts.
        code: ISO 639-1 code of the expected language.
        label: Name of the expected language, for the message.
        codes: Codes of the languages to choose from, including `code`.

    Raises:
        UserError: Too many texts are in another of the languages.
    """
    rows = list(texts)
    foreign = [
        (where, repr(text[:60])) for where, text in rows if not is_in_language(text, code, codes)
    ]
    refuse_above(
        MOST_FOREIGN,
        foreign,
        len(rows),
        f"sentences are not in {label}",
        fewest=_FEWEST_FOREIGN,
        hint=f"use only sentences in {label}",
    )


@cache
def _identifier(*codes: str) -> Any:
    """Load a language identifier restricted to these ISO 639-1 codes."""
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
