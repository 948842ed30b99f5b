"""What every part of config.yaml is."""

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from pieline.core.errors import UserError
from pieline.core.records import Frozen

S = TypeVar("S", bound=BaseModel)


class Settings(Frozen):
    """A part of config.yaml: unknown keys are errors, everything has a default."""


def checked(kind: type[S], entry: Mapping[str, Any], where: str) -> S:
    """Validate a mapping.

    Raises:
        UserError: a field is missing, unknown or wrong; names every such field.
    """
    try:
        return kind.model_validate(dict(entry))
    except ValidationError as error:
        problems = [
            f"{'.'.join(map(str, problem['loc'])) or 'entry'}: {problem['msg']}"
            for problem in error.errors(include_url=False, include_input=False)
        ]
        raise UserError("; ".join(problems), where=where) from None
