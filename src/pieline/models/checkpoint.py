"""Weights to load, and the entries of every kind that has some."""

from typing import Literal, Self

from pydantic import Field, model_validator

from pieline.core.files import canonical_json
from pieline.models.entry import DESCRIPTIVE_FIELDS, ModelEntry


class CheckpointEntry(ModelEntry):
    """Weights to load: from the hub at a revision, from a Python package, or from a folder."""

    checkpoint: str = Field(
        description="Name on the hub; for a package, of the same weights there."
    )
    source: Literal["hub", "package", "folder"]
    revision: str | None = Field(default=None, description="Pinned commit on the hub.")
    package: str | None = Field(
        default=None, description="Import name of the package with weights."
    )
    path: str | None = Field(
        default=None,
        description="Folder or GGUF file with the weights, within the package or absolute.",
    )
    pickled: Literal[True] | None = Field(
        default=None,
        description="The commit has its weights only as a pickle: they are converted once, by a job"
        " of its own, and safetensors are loaded.",
    )
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    trust_remote_code: bool = False
    code_revision: str | None = Field(
        default=None,
        description="Pinned commit of the remote code, where it lies in another repository.",
    )

    @model_validator(mode="after")
    def _source_is_complete(self) -> Self:
        if self.source == "package" and not (self.package and self.path):
            raise ValueError("source 'package' needs 'package' and 'path'")
        if self.source == "folder" and not self.path:
            raise ValueError("source 'folder' needs 'path'")
        return self

    def weights_spec(self) -> str:
        """Canonical JSON of the fields that say which weights these are."""
        own = set(CheckpointEntry.model_fields) - DESCRIPTIVE_FIELDS
        return canonical_json(self.model_dump(mode="json", include=own, exclude_none=True))

    @property
    def is_gguf(self) -> bool:
        """Whether the weights are one GGUF file."""
        return bool(self.path and self.path.endswith(".gguf"))

    @property
    def must_be_unpacked(self) -> bool:
        """Whether the weights must be made a safetensors folder before use."""
        return self.is_gguf or bool(self.pickled)
