"""What each model is: the entries of models.yaml."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PositiveInt,
    TypeAdapter,
    ValidationError,
    field_serializer,
    model_validator,
)

from pieline.errors import UserError
from pieline.files import canonical_json
from pieline.llm.spec import LLMSpec
from pieline.records import explain
from pieline.words import Language
from pieline.yamls import read_yaml

InstructionFormat = Literal[
    "instruction_newline_query",
    "instruct_query",
    "instruct_query_unspaced",
    "instruction_space_query",
    "instruction_sep_query",
    "instruction_query_pair",
    "nomic_search_query",
    "gemma_instruct_query",
    "gritlm_user_embed",
]

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


class Bm25Entry(ModelEntry):
    """BM25 by rank-bm25 (IdioLink, appendix E)."""

    kind: Literal["bm25"]


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
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    trust_remote_code: bool = False

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
        """Whether the weights are one GGUF file, which must be unpacked before use."""
        return bool(self.path and self.path.endswith(".gguf"))


class EmbedderEntry(CheckpointEntry):
    """A text-embedding model that sentence-transformers loads (IdioLink, section 5.2, Table 6)."""

    kind: Literal["embedder"]
    trained_with_instructions: bool = Field(description="Its group in IdioLink's Table 2.")
    instruction_format: InstructionFormat = Field(
        description="How instruction and query become one text (IdioLink, appendix B)."
    )
    query_prefix: str = Field(default="", description="Put before a query without instruction.")
    passage_prefix: str = Field(default="", description="Put before a document.")
    pooling: Literal["checkpoint", "mean", "cls", "lasttoken", "latent"] = Field(
        default="checkpoint",
        description="'checkpoint': as its sentence-transformers files say; 'latent': the latent "
        "attention layer that lies beside its weights.",
    )
    pool_prefixes: bool = Field(
        default=True,
        description="Whether the model's own pooling counts the tokens of its prefixes.",
    )
    bidirectional: bool = Field(
        default=False, description="Let a decoder's tokens attend both ways."
    )
    attention: Literal["eager", "sdpa", "flash_attention_2"] | None = Field(
        default=None, description="Attention kernel; by default the fastest that the model takes."
    )
    max_length: PositiveInt = Field(description="Longest input in tokens; what follows is cut off.")
    batch_size: PositiveInt = 32
    needs_gpu: bool = False

    def document_spec(self) -> str:
        """As `execution_spec`, without what only changes queries: documents are embedded once."""
        query_side = {"query_prefix", "instruction_format"}
        fields = self.model_dump(
            mode="json", exclude=set(DESCRIPTIVE_FIELDS) | query_side, exclude_none=True
        )
        return canonical_json(fields)

    def training_spec(self, *, instructed: bool) -> str:
        """As `execution_spec`, without the way of writing queries that a training does not use."""
        unused = {"query_prefix"} if instructed else {"instruction_format"}
        fields = self.model_dump(
            mode="json", exclude=set(DESCRIPTIVE_FIELDS) | unused, exclude_none=True
        )
        return canonical_json(fields)


class EncoderEntry(CheckpointEntry):
    """A bidirectional encoder that is fine-tuned to tag idioms (ID10M-JAM, appendix D)."""

    kind: Literal["encoder"]
    languages: list[Language] = Field(
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


class CausalEntry(CheckpointEntry):
    """A causal language model whose attention is looked into (ID10M-JAM, appendix H)."""

    kind: Literal["causal_lm"]
    needs_gpu: bool = False


class LLMEntry(LLMSpec, ModelEntry):
    """A language model that is asked (IdioTS, section 4.1; ID10M-JAM, appendix I)."""

    kind: Literal["llm"]
    licence: str = Field(description="Licence of the weights, SPDX where there is an identifier.")

    @field_serializer("accepts")
    def _sorted(self, accepts: frozenset[str]) -> list[str]:
        # A set has no order of its own, and an execution spec must not depend on the process.
        return sorted(accepts)


AnyEntry = Bm25Entry | CausalEntry | EmbedderEntry | EncoderEntry | LLMEntry
Entry = Annotated[AnyEntry, Field(discriminator="kind")]
ENTRY: TypeAdapter[AnyEntry] = TypeAdapter(Entry)
_E = TypeVar("_E", bound=BaseModel)
Registry = dict[str, AnyEntry]


def load_registry(path: str | Path) -> Registry:
    """Read models.yaml: entries by name.

    Raises:
        UserError: names the file, the entry and the field that is wrong.
    """
    raw = read_yaml(path)
    if not isinstance(raw, Mapping):
        raise UserError("not a mapping of model names to entries", where=path, mend="see its head")
    registry: Registry = {}
    for name, fields in raw.items():
        try:
            registry[name] = ENTRY.validate_python(fields)
        except ValidationError as error:
            raise UserError(
                explain(error), where=f"{path}: {name}", mend="see schemas/models.schema.yaml"
            ) from None
    return registry


def parse_spec(text: str) -> EmbedderEntry:
    """The embedder that an `execution_spec` or `document_spec` describes.

    Raises:
        UserError: the text is no such spec.
    """
    unsaid = {"label": "", "licence": "", "trained_with_instructions": False}
    return _parse(text, EmbedderEntry, unsaid | {"instruction_format": "instruct_query"})


def parse_encoder_spec(text: str) -> EncoderEntry:
    """The encoder that an `execution_spec` describes.

    Raises:
        UserError: the text is no such spec.
    """
    return _parse(text, EncoderEntry, {"label": "", "licence": "", "languages": ["english"]})


def parse_weights_spec(text: str) -> CheckpointEntry:
    """The weights that a `weights_spec` describes.

    Raises:
        UserError: the text is no such spec.
    """
    return _parse(text, CheckpointEntry, {"label": "", "licence": ""})


def parse_llm_spec(text: str, *, name: str) -> LLMEntry:
    """The language model that an `execution_spec` describes.

    Args:
        text: the spec.
        name: its name in models.yaml, which messages show.

    Raises:
        UserError: the text is no such spec.
    """
    return _parse(text, LLMEntry, {"label": name, "licence": ""})


def _parse(text: str, entry: type[_E], unsaid: Mapping[str, Any]) -> _E:
    """An entry from its spec and from `unsaid`, what no spec says because no result hangs on it."""
    mend = "pass an entry of models.yaml as JSON"
    try:
        return entry.model_validate(dict(unsaid) | json.loads(text))
    except ValidationError as error:
        raise UserError(explain(error), where="--spec", mend=mend) from None
    except (ValueError, TypeError):
        raise UserError("not a JSON object", where="--spec", mend=mend) from None


def registry_schema() -> dict[str, Any]:
    """JSON schema of models.yaml, for editors and for Snakemake's `validate`."""
    schema = ENTRY.json_schema()
    definitions = schema.pop("$defs", {})
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "models.yaml: what each model is",
        "type": "object",
        "additionalProperties": schema,
        "$defs": definitions,
    }
