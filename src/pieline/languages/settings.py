"""Type of language settings, in a separate module so that matching need not import pydantic."""

from typing import Annotated

from pydantic import AfterValidator

from pieline.core.errors import UserError
from pieline.languages.registry import get_language


def _validate_language(name: str) -> str:
    try:
        return get_language(name).name
    except UserError as error:
        raise ValueError(str(error)) from None


LanguageName = Annotated[str, AfterValidator(_validate_language)]
"""Name of a supported language."""
