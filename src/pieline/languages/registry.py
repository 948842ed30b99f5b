"""The languages that there are: each module of this package that has a `LANGUAGE`."""

import pkgutil
from functools import cache
from importlib import import_module

from pieline import languages
from pieline.core.errors import UserError
from pieline.languages.language import Language


def find(name: str) -> Language:
    """A language by its name.

    Raises:
        UserError: no module has it.
    """
    if name not in _languages():
        raise UserError(
            f"unknown language {name!r}",
            mend=f"known: {', '.join(known())}; a language is a module of pieline.languages",
        )
    return _languages()[name]


def known() -> list[str]:
    """The names of all languages, sorted."""
    return sorted(_languages())


@cache
def _languages() -> dict[str, Language]:
    """All languages by name."""
    names = (module.name for module in pkgutil.iter_modules(languages.__path__))
    modules = [import_module(f"{languages.__name__}.{name}") for name in names]
    found = [module.LANGUAGE for module in modules if hasattr(module, "LANGUAGE")]
    return {language.name: language for language in found}
