"""Model descriptions and data notes in the tables of all studies."""

from pieline.core.records import Frozen, validated

SAMPLE_NOTE = (
    "Computed on the sample data written for this repository: "
    "not comparable with the paper, and no basis for a scientific conclusion."
)


class ModelDescription(Frozen):
    """Fields of a model's entry that tables and the results page use.

    Attributes:
        is_configured: Whether the configuration names the model; if not, only the paper has it.
        not_run: Why none of its runs can be made; empty if some can.
    """

    name: str
    kind: str
    label: str
    parameters: str | None = None
    published_as: str | None = None
    trained_with_instructions: bool = False
    reasoning: bool = False
    is_configured: bool = True
    not_run: str = ""


def load_descriptions(text: str) -> list[ModelDescription]:
    """Parse model descriptions from JSON.

    Raises:
        UserError: The text is not a JSON list of descriptions.
    """
    hint = "pass a JSON list"
    return validated(list[ModelDescription], text, where="--models", hint=hint, is_json=True)
