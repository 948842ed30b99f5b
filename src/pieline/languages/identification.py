"""Which of the known languages a text is in."""

from functools import cache
from typing import Any

from pieline.languages.registry import find, known

_FEWEST_LETTERS = 25


def is_in(language: str, text: str) -> bool:
    """Whether a text is in a language; a text too short to tell passes."""
    if sum(letter.isalpha() for letter in text) < _FEWEST_LETTERS:
        return True
    code, _ = _identifier(*(find(name).code for name in known())).classify(text)
    return bool(code == find(language).code)


@cache
def _identifier(*codes: str) -> Any:
    """A language identifier that knows these languages."""
    # Half a second to load, needed by few checks.
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE)
    identifier.set_languages(list(codes))
    return identifier
