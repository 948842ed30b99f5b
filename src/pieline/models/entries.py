"""Define the base classes of entries of models.yaml, and entries with few additional fields."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, PositiveInt, model_validator

from pieline.core.files import canonical_json
from pieline.core.records import Line, validated
from pieline.core.settings import Settings

HUB_NAME = re.compile(r"[\w-][\w.-]*(/[\w-][\w.-]*)?")
"""Pattern of the names of repositories on the Hub."""

DESCRIPTIVE_FIELDS = frozenset(
    {
        "label",
        "licence",
        "parameters",
        "published_as",
        "ends",
        "trained_with_instructions",
    }
)
"""Fields that describe a model but do not change its results."""


def check_hub_name(field: str, name: str, path: str | Path | None) -> None:
    """Raise a `ValueError` if an entry with source `hub` has a path or an invalid repository name.

    Args:
        field: Field of the entry that contains the name of the repository.
        name: Name of the repository.
        path: Value of the entry's field `path`.
    """
    if path or not HUB_NAME.fullmatch(name):
        value = f"path {str(path)!r}" if path else f"{field} {name!r}"
        raise ValueError(
            f"source 'hub' needs the name of a repository, not a path ({value});"
            " for a local folder use source: folder"
        )


class ModelEntry(Settings):
    """Base class of all entries of models.yaml."""

    label: Line = Field(description="Name in tables and figures.")
    licence: Line = Field(description="License of the weights, as an SPDX identifier if possible.")
    parameters: Line | None = Field(
        default=None, description="Number of parameters as text, such as 110M."
    )
    published_as: str | None = Field(
        default=None,
        description="Name of the model in the printed numbers (published/*.csv).",
    )

    SPEC_DEFAULTS: ClassVar[Mapping[str, Any]] = {"label": "-", "licence": "-"}
    """Placeholders for required fields that an execution spec does not contain."""

    def execution_spec(self) -> str:
        """Return the fields that affect the results of the model, as canonical JSON.

        Rules pass only this text to their scripts, so that jobs do not run again after the user
        edits a comment or a label.
        """
        return self._spec()

    def _spec(self, *excluded: str) -> str:
        """Return the execution spec without the excluded fields."""
        omitted = {*DESCRIPTIVE_FIELDS, *excluded}
        return canonical_json(self.model_dump(mode="json", exclude=omitted, exclude_none=True))

    @classmethod
    def from_spec(cls, text: str, **omitted: str) -> Self:
        """Create an entry from an execution spec.

        Args:
            text: Execution spec.
            omitted: Values of fields that the spec does not contain (default: `SPEC_DEFAULTS`).

        Raises:
            UserError: The text is not a valid spec.
        """
        hint = "pass an entry of models.yaml as JSON"
        spec = validated(dict[str, Any], text, where="--spec", hint=hint, is_json=True)
        fields = {**cls.SPEC_DEFAULTS, **omitted, **spec}
        return validated(cls, fields, where="--spec", hint=hint)


class Bm25Entry(ModelEntry):
    """Entry for BM25 as implemented by rank-bm25 (IdioLink, appendix E)."""

    kind: Literal["bm25"] = Field(description="Kind of the model: BM25.")


class CheckpointEntry(ModelEntry):
    """Entry for a model with weights on the Hub, in a Python package, or in a local folder."""

    checkpoint: str = Field(
        description="Name of the repository on the Hub; for a package, the repository with the same"
        " weights; for a folder, any name."
    )
    source: Literal["hub", "package", "folder"] = Field(
        description="Location of the weights: on the Hub, in a Python package, or in a local"
        " folder."
    )
    revision: str | None = Field(default=None, description="Pinned commit on the Hub.")
    package: str | None = Field(
        default=None, description="Import name of the package that contains the weights."
    )
    path: str | None = Field(
        default=None,
        description="Folder or GGUF file of the weights. For a package, the path is relative to the"
        " package's folder; for a folder, it is absolute or relative to the working directory.",
    )
    pickled: Literal[True] | None = Field(
        default=None,
        description="true: the commit contains the weights only as a pickle file, which a separate"
        " job converts to safetensors.",
    )
    dtype: Literal["float32", "bfloat16", "float16"] = Field(
        default="float32", description="Data type in which the model computes."
    )
    trust_remote_code: bool = Field(
        default=False, description="Whether to execute code from the model's repository."
    )
    code_revision: str | None = Field(
        default=None,
        description="Pinned commit of the remote code, if it is in another repository.",
    )

    @model_validator(mode="after")
    def _check_source(self) -> Self:
        if self.source == "package" and not (self.package and self.path):
            raise ValueError("source 'package' needs 'package' and 'path'")
        if self.source == "folder" and not self.path:
            raise ValueError("source 'folder' needs 'path'")
        if self.source == "hub":
            check_hub_name("checkpoint", self.checkpoint, self.path)
        return self

    def weights_spec(self) -> str:
        """Return the fields that determine how the weights are loaded, as canonical JSON."""
        loading_fields = set(CheckpointEntry.model_fields) - DESCRIPTIVE_FIELDS
        return canonical_json(
            self.model_dump(mode="json", include=loading_fields, exclude_none=True)
        )

    @property
    def is_gguf(self) -> bool:
        """Whether the weights are a GGUF file."""
        return bool(self.path and self.path.endswith(".gguf"))

    @property
    def must_be_unpacked(self) -> bool:
        """Whether the weights must be converted to safetensors before use."""
        return self.is_gguf or bool(self.pickled)


Override = Literal[
    "default_prompt_name",
    "dtype",
    "include_prompt",
    "max_seq_length",
    "pooling",
    "prompts",
    "similarity_fn_name",
    "truncate_dim",
]


class Overrides(Settings):
    """Base class of entries that can override settings in the files of a checkpoint."""

    overrides: tuple[Override, ...] | None = Field(
        default=None,
        min_length=1,
        description="Settings in the checkpoint's sentence-transformers files that this entry"
        " overrides on purpose; any other contradiction between the files and the entry is an"
        " error.",
    )


class CausalEntry(CheckpointEntry):
    """Entry for a causal language model whose attention is analyzed (ID10M-JAM, appendix H)."""

    kind: Literal["causal_lm"] = Field(description="Kind of the model: a causal language model.")


class EncoderEntry(CheckpointEntry):
    """Entry for a bidirectional encoder to fine-tune for tagging idioms (ID10M-JAM, appendix D)."""

    SPEC_DEFAULTS: ClassVar = {**CheckpointEntry.SPEC_DEFAULTS, "languages": ["english"]}
    kind: Literal["encoder"] = Field(description="Kind of the model: an encoder to fine-tune.")
    languages: list[str] = Field(
        min_length=1, description="Languages of ID10M-JAM on which the encoder is fine-tuned."
    )
    max_length: PositiveInt = Field(
        description="Maximum input length in tokens; longer inputs are truncated."
    )

    def execution_spec(self) -> str:
        """Return the execution spec without `languages`, because a job is for one language."""
        return self._spec("languages")
