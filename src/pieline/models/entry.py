"""What every entry of models.yaml has."""

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from pydantic import Field

from pieline.core.files import canonical_json
from pieline.core.records import Frozen, validated

DESCRIPTIVE_FIELDS = frozenset(
    {
        "label",
        "licence",
        "parameters",
        "published_parameters",
        "published_as",
        "released_inputs",
        "notes",
        "retired",
        "ends",
        "trained_with_instructions",
    }
)
"""Fields that say something about a model but change nothing that it computes."""


class ModelEntry(Frozen):
    """What every entry of models.yaml has."""

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

    UNSAID: ClassVar[Mapping[str, Any]] = {"label": "", "licence": ""}
    """Fields that no spec says, because no result hangs on them, and what stands for them."""

    def execution_spec(self) -> str:
        """Canonical JSON of the fields that change what the model computes.

        Rules hand this text to their scripts, so an edit to a note or a label reruns no prediction.
        """
        return self._spec()

    def _spec(self, *besides: str) -> str:
        """The same without some fields."""
        unsaid = {*DESCRIPTIVE_FIELDS, *besides}
        return canonical_json(self.model_dump(mode="json", exclude=unsaid, exclude_none=True))

    @classmethod
    def from_spec(cls, text: str, **unsaid: str) -> Self:
        """The entry that such a spec describes; `unsaid` says what it does not.

        Raises:
            UserError: the text is no such spec.
        """
        mend = "pass an entry of models.yaml as JSON"
        said = validated(dict[str, Any], text, where="--spec", mend=mend, is_json=True)
        return validated(cls, {**cls.UNSAID, **unsaid, **said}, where="--spec", mend=mend)
