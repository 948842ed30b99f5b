"""Entries of kind encoder."""

from typing import Literal

from pydantic import Field, PositiveInt

from pieline.core.files import canonical_json
from pieline.models.checkpoint import CheckpointEntry
from pieline.models.entry import DESCRIPTIVE_FIELDS, parse_entry


class EncoderEntry(CheckpointEntry):
    """A bidirectional encoder that is fine-tuned to tag idioms (ID10M-JAM, appendix D)."""

    kind: Literal["encoder"]
    languages: list[str] = Field(
        min_length=1, description="Languages of ID10M-JAM that it is fine-tuned on."
    )
    max_length: PositiveInt = Field(description="Longest input in tokens; what follows is cut off.")
    needs_gpu: bool = False

    def execution_spec(self) -> str:
        """As of every entry, without what only says where and for which languages it is run."""
        elsewhere = {"languages", "needs_gpu"}
        fields = self.model_dump(
            mode="json", exclude=set(DESCRIPTIVE_FIELDS) | elsewhere, exclude_none=True
        )
        return canonical_json(fields)


def parse_encoder_spec(text: str) -> EncoderEntry:
    """The encoder that an `execution_spec` describes.

    Raises:
        UserError: the text is no such spec.
    """
    return parse_entry(text, EncoderEntry, {"label": "", "licence": "", "languages": ["english"]})
