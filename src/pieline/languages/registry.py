"""The languages that there are: each module of this package that has a `LANGUAGE`.

Answers are read in all languages that have `ANSWERS`, whatever the language that was asked about.
"""

import pkgutil
from functools import cache
from importlib import import_module
from types import ModuleType

from pieline import languages
from pieline.core.errors import UserError
from pieline.languages.language import AnswerWords, Language


def find(name: str) -> Language:
    """A language by its name.

    Raises:
        UserError: no module has it.
    """
    if name not in _languages():
        raise UserError(
            f"unknown language {name!r}",
            hint=f"known: {', '.join(known())}; a language is a module of pieline.languages",
        )
    return _languages()[name]


def known() -> list[str]:
    """The names of all languages, sorted."""
    return sorted(_languages())


@cache
def answer_words() -> tuple[AnswerWords, ...]:
    """How answers speak of idioms, in each language."""
    return tuple(module.ANSWERS for module in _modules() if hasattr(module, "ANSWERS"))


@cache
def _languages() -> dict[str, Language]:
    """All languages by name."""
    return {
        module.LANGUAGE.name: module.LANGUAGE
        for module in _modules()
        if hasattr(module, "LANGUAGE")
    }


def _modules() -> list[ModuleType]:
    return [
        import_module(f"{languages.__name__}.{module.name}")
        for module in pkgutil.iter_modules(languages.__path__)
    ]
