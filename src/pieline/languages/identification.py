"""Identify the language of a text among the supported languages."""

from functools import cache
from typing import Any

from pieline.languages.registry import find, known

_FEWEST_LETTERS = 25


def is_in(language: str, text: str) -> bool:
    """Return whether a text is in a language; always True for very short texts."""
    if sum(letter.isalpha() for letter in text) < _FEWEST_LETTERS:
        return True
    code, _ = _identifier(*(find(name).code for name in known())).classify(text)
    return bool(code == find(language).code)


@cache
def _identifier(*codes: str) -> Any:
    """Load a language identifier restricted to these codes."""
    # Import lazily: loading takes half a second, and few checks need it.
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE)
    identifier.set_languages(list(codes))
    return identifier
