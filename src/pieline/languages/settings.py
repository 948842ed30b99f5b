"""Type of settings that contain the name of a language.

This type is in a module of its own, so that modules for matching do not import pydantic.
"""

from typing import Annotated

from pydantic import AfterValidator

from pieline.core.errors import UserError
from pieline.languages.registry import get_language


def _validate_language(name: str) -> str:
    """Return the name of a language; raise a `ValueError` if the language is not supported."""
    try:
        return get_language(name).name
    except UserError as error:
        raise ValueError(str(error)) from None


LanguageName = Annotated[str, AfterValidator(_validate_language)]
"""Name of a supported language."""
