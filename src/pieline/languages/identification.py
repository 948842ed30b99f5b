"""Identify the language of a text among the supported languages."""

from functools import cache
from typing import Any

from pieline.languages.registry import get_language, language_names

_FEWEST_LETTERS = 25


def is_in_language(language: str, text: str) -> bool:
    """Return whether a text is in a language; always True for texts with fewer than 25 letters."""
    if sum(letter.isalpha() for letter in text) < _FEWEST_LETTERS:
        return True
    code, _ = _identifier(*(get_language(name).code for name in language_names())).classify(text)
    return bool(code == get_language(language).code)


@cache
def _identifier(*codes: str) -> Any:
    """Load a language identifier restricted to these ISO 639-1 codes."""
    # Import lazily: loading takes half a second, and few checks need it.
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE)
    identifier.set_languages(list(codes))
    return identifier
