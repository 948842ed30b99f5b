"""Identify the language of a text among the supported languages."""

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from pieline.core.errors import UserError
from pieline.core.texts import refuse_above
from pieline.languages.registry import get_language, language_names

MOST_FOREIGN = 0.1
"""Maximum share of the texts in a file that may be in another language."""
_FEWEST_LETTERS = 25
_FEWEST_FOREIGN = 2


def is_in_language(language: str, text: str) -> bool:
    """Return whether a text is in a language; always True for texts with fewer than 25 letters."""
    if sum(letter.isalpha() for letter in text) < _FEWEST_LETTERS:
        return True
    code, _ = _identifier(*(get_language(name).code for name in language_names())).classify(text)
    return bool(code == get_language(language).code)


def check_language(texts: Iterable[tuple[str | Path, str]], language: str) -> None:
    """Check the language of the texts in a file, each with its place in the file.

    Raises:
        UserError: Too many texts are in another of the supported languages.
    """
    rows = list(texts)
    foreign = [
        (where, repr(text[:60])) for where, text in rows if not is_in_language(language, text)
    ]
    label = get_language(language).label
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
