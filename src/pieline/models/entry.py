"""What every entry of models.yaml has."""

import json
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pieline.core.errors import UserError
from pieline.core.files import canonical_json
from pieline.core.records import explain

_E = TypeVar("_E", bound=BaseModel)

DESCRIPTIVE_FIELDS = frozenset(
    {
        "label",
        "licence",
        "parameters",
        "published_parameters",
        "published_as",
        "notes",
        "retired",
        "trained_with_instructions",
    }
)
"""Fields that say something about a model but change nothing that it computes."""


class ModelEntry(BaseModel):
    """What every entry of models.yaml has."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    label: str = Field(description="Name in tables and figures.")
    licence: str = Field(description="Licence of the weights, SPDX where there is an identifier.")
    parameters: str | None = Field(default=None, description="Number of parameters, as text.")
    published_parameters: str | None = Field(
        default=None, description="Number of parameters as the paper prints it, where it differs."
    )
    published_as: str | None = Field(
        default=None,
        description="Name under which published/*.csv has the model's printed numbers.",
    )
    notes: str | None = Field(default=None, description="Anything a reader should know.")

    def execution_spec(self) -> str:
        """Canonical JSON of the fields that change what the model computes.

        Rules hand this text to their scripts, so an edit to a note or a label reruns no prediction.
        """
        fields = self.model_dump(mode="json", exclude=set(DESCRIPTIVE_FIELDS), exclude_none=True)
        return canonical_json(fields)


def parse_entry(text: str, entry: type[_E], unsaid: Mapping[str, Any]) -> _E:
    """An entry from its spec and from `unsaid`, what no spec says because no result hangs on it."""
    mend = "pass an entry of models.yaml as JSON"
    try:
        return entry.model_validate(dict(unsaid) | json.loads(text))
    except ValidationError as error:
        raise UserError(explain(error), where="--spec", mend=mend) from None
    except (ValueError, TypeError):
        raise UserError("not a JSON object", where="--spec", mend=mend) from None
