"""Find the supported languages, each of which a module of this package defines as `LANGUAGE`.

Answers are parsed with the vocabularies (`ANSWERS`) of all languages, because an answer and its
prompt can be in different languages.
"""

import pkgutil
from functools import cache
from importlib import import_module
from types import ModuleType

from pieline import languages
from pieline.core.errors import UserError
from pieline.languages.language import AnswerWords, Language


def get_language(name: str) -> Language:
    """Return a language by name.

    Raises:
        UserError: No module defines the language.
    """
    if name not in _languages():
        raise UserError(
            f"unknown language {name!r}",
            hint=f"choose {', '.join(language_names())}, or add a module to pieline.languages",
        )
    return _languages()[name]


def language_names() -> list[str]:
    """Return the sorted names of all languages."""
    return sorted(_languages())


def language_codes() -> list[str]:
    """Return the ISO 639-1 codes of all languages, in the order of their names."""
    return [get_language(name).code for name in language_names()]


def facts_of_language(language: str) -> dict[str, str | list[str]]:
    """Return the arguments of `check_language` for texts in a language, by parameter."""
    lang = get_language(language)
    return {"code": lang.code, "label": lang.label, "codes": language_codes()}


@cache
def answer_words() -> tuple[AnswerWords, ...]:
    """Return the answer vocabularies of all languages."""
    return tuple(module.ANSWERS for module in _modules() if hasattr(module, "ANSWERS"))


@cache
def _languages() -> dict[str, Language]:
    """Return all languages by name."""
    return {
        module.LANGUAGE.name: module.LANGUAGE
        for module in _modules()
        if hasattr(module, "LANGUAGE")
    }


def _modules() -> list[ModuleType]:
    """Import and return the modules of this package."""
    return [
        import_module(f"{languages.__name__}.{module.name}")
        for module in pkgutil.iter_modules(languages.__path__)
    ]
