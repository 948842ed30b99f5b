"""Define entries for rerankers and late-interaction models."""

from typing import Literal, Self

from pydantic import Field, PositiveInt, model_validator

from pieline.core.records import Name
from pieline.models.embedder import InstructionFormat, Prefixes
from pieline.models.entries import CheckpointEntry, Overrides


class RankerEntry(CheckpointEntry, Prefixes, Overrides):
    """Base class of entries for rerankers and late-interaction models."""

    instruction_format: InstructionFormat = Field(
        default="instruction_newline_query",
        description="Format that combines instruction and query (IdioLink, appendix B).",
    )
    max_length: PositiveInt = Field(
        description="Maximum input length in tokens (for a reranker, of query and document"
        " together); longer inputs are truncated."
    )
    batch_size: PositiveInt = Field(default=32, description="Number of texts per batch.")

    @model_validator(mode="after")
    def _check_weights(self) -> Self:
        if self.must_be_unpacked:
            raise ValueError("models of this kind need safetensors, not a pickle or a GGUF file")
        if self.code_revision:
            raise ValueError("models of this kind do not support 'code_revision'")
        if self.source == "hub" and not self.revision:
            raise ValueError("source 'hub' needs a 'revision'")
        return self


class RerankerEntry(RankerEntry):
    """Entry for a cross-encoder that rescores the documents retrieved by another model."""

    kind: Literal["reranker"] = Field(description="Kind of the model: a cross-encoder.")
    first_stage: Name = Field(
        description="Model of kind bm25 or embedder whose ranking is reranked."
    )


class LateInteractionEntry(RankerEntry):
    """Entry for a model that compares each query token with each document token (MaxSim)."""

    kind: Literal["late_interaction"] = Field(
        description="Kind of the model: a late-interaction model."
    )
