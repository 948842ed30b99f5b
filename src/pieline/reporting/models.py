"""Descriptions of models, and the notice on sample data, for the tables of all studies."""

from pieline.core.records import Frozen, validated

SAMPLE_NOTE = (
    "Computed on the sample data written for this repository: "
    "not comparable with the paper, and no basis for a scientific conclusion."
)


class ModelDescription(Frozen):
    """What tables and the results page state about a model.

    Attributes:
        published_as: Name that the papers print; None if they do not print the model.
        is_configured: Whether this run's configuration selects the model.
        not_run: Why all runs of the model are impossible; empty if at least one run is possible.
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
    """Parse a JSON list of model descriptions.

    Raises:
        UserError: The text is not a JSON list of model descriptions.
    """
    hint = "pass a JSON list"
    return validated(list[ModelDescription], text, where="--models", hint=hint, is_json=True)
