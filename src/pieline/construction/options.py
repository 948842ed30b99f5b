"""Settings on a command line."""

from typing import TypeVar

from pydantic import BaseModel, ValidationError

from pieline.errors import UserError
from pieline.records import explain

M = TypeVar("M", bound=BaseModel)


def parse_options(text: str, record: type[M], *, option: str) -> M:
    """Settings that a rule hands to its script, as JSON.

    Raises:
        UserError: the text is no such settings; names the option.
    """
    try:
        return record.model_validate_json(text)
    except ValidationError as error:
        mend = "pass the section idiolink.construction as JSON"
        raise UserError(explain(error), where=option, mend=mend) from None
