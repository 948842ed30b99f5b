"""What every study's tables say of models and of the sample data."""

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from pieline.core.errors import UserError
from pieline.core.records import explain

SAMPLE_NOTE = (
    "Computed on the sample data written for this repository: "
    "not comparable with the paper and fit for no scientific conclusion."
)


class ModelDescription(BaseModel):
    """What a table says of a model."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    kind: str
    label: str
    parameters: str | None = None
    published_parameters: str | None = None
    published_as: str | None = None
    trained_with_instructions: bool = False
    reasoning: bool = False


def load_descriptions(text: str) -> list[ModelDescription]:
    """Parse the models' descriptions from JSON.

    Raises:
        UserError: the text is no such list.
    """
    try:
        return TypeAdapter(list[ModelDescription]).validate_json(text)
    except ValidationError as error:
        raise UserError(explain(error), where="--models", mend="pass a JSON list") from None
