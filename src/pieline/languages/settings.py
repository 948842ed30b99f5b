"""A language as a setting; apart, so that matching does not load pydantic."""

from typing import Annotated

from pydantic import AfterValidator

from pieline.core.errors import UserError
from pieline.languages.registry import find


def _known(name: str) -> str:
    try:
        return find(name).name
    except UserError as error:
        raise ValueError(str(error)) from None


LanguageName = Annotated[str, AfterValidator(_known)]
"""The name of a language that has a module."""
