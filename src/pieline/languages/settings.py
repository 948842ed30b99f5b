"""Define the setting type of a language, separately so that matching does not import pydantic."""

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
"""Name of a supported language."""
