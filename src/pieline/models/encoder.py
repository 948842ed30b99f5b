"""Entries of kind encoder."""

from typing import ClassVar, Literal

from pydantic import Field, PositiveInt

from pieline.models.checkpoint import CheckpointEntry


class EncoderEntry(CheckpointEntry):
    """A bidirectional encoder that is fine-tuned to tag idioms (ID10M-JAM, appendix D)."""

    UNSAID: ClassVar = {**CheckpointEntry.UNSAID, "languages": ["english"]}
    kind: Literal["encoder"]
    languages: list[str] = Field(
        min_length=1, description="Languages of ID10M-JAM that it is fine-tuned on."
    )
    max_length: PositiveInt = Field(description="Longest input in tokens; what follows is cut off.")
    needs_gpu: bool = False

    def execution_spec(self) -> str:
        """As of every entry, without what only says where and for which languages it is run."""
        return self._spec("languages", "needs_gpu")
