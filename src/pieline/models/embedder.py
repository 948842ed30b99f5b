"""Define entries for embedders with local weights."""

from collections.abc import Mapping
from typing import ClassVar, Literal, Self

from pydantic import Field, PositiveInt, model_validator

from pieline.core.settings import Settings
from pieline.models.entries import CheckpointEntry, Overrides

Inputs = Literal["paper", "released"]
Device = Literal["mps"]
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
    "represent_sentence_query",
    "search_query",
]
_FIELDS_OF_INSTRUCTED_QUERIES = ("instruction_format", "span_instruction_format")
_FIELDS_OF_PLAIN_QUERIES = ("query_prefix", "span_query_prefix")


class Prefixes(Settings):
    """Prefixes that a retrieval model expects before its texts."""

    query_prefix: str = Field(default="", description="Prefix of a query without an instruction.")
    passage_prefix: str = Field(default="", description="Prefix of a document.")


_SPACE_BEFORE_QUERY = {"instruction_format": "instruct_query"}
_NO_SPACE_BEFORE_QUERY = {"instruction_format": "instruct_query_unspaced"}
_SPANS_WITHOUT_PAIRS = {"span_instruction_format": "instruction_newline_query"}
RELEASED_INPUTS: Mapping[str, Mapping[str, str]] = {
    "sentence-transformers/all-MiniLM-L6-v2": _SPACE_BEFORE_QUERY,
    "facebook/contriever": _SPACE_BEFORE_QUERY,
    "intfloat/e5-base-v2": _SPACE_BEFORE_QUERY,
    "facebook/drama-1b": _SPACE_BEFORE_QUERY,
    "BAAI/bge-m3": _SPACE_BEFORE_QUERY,
    "BAAI/bge-base-en-v1.5": {"instruction_format": "represent_sentence_query"},
    "hkunlp/instructor-base": _SPANS_WITHOUT_PAIRS,
    "hkunlp/instructor-xl": _SPANS_WITHOUT_PAIRS,
    "nomic-ai/nomic-embed-text-v2-moe": {
        "instruction_format": "search_query",
        "span_query_prefix": "",
    },
    "Linq-AI-Research/Linq-Embed-Mistral": _NO_SPACE_BEFORE_QUERY,
    "nvidia/llama-embed-nemotron-8b": _NO_SPACE_BEFORE_QUERY,
}
"""Fields of a `ConfiguredEmbedder` whose values in the code of IdioLink's authors (commit 960d4dd)
differ from those in models.yaml, by the model's name in Table 6."""


class EmbedderEntry(CheckpointEntry, Prefixes, Overrides):
    """Entry for a model loaded by sentence-transformers (IdioLink, section 5.2, Table 6)."""

    SPEC_DEFAULTS: ClassVar = {
        **CheckpointEntry.SPEC_DEFAULTS,
        "trained_with_instructions": False,
        "instruction_format": "instruct_query",
    }
    kind: Literal["embedder"] = Field(description="Kind of the model: an embedder.")
    trained_with_instructions: bool = Field(
        description="Whether the model was trained with instructions, which determines its group in"
        " IdioLink's Table 2."
    )
    instruction_format: InstructionFormat = Field(
        description="Format that combines instruction and query (IdioLink, appendix B)."
    )
    pooling: Literal["checkpoint", "mean", "cls", "lasttoken", "latent"] = Field(
        default="checkpoint",
        description="'checkpoint': as in the checkpoint's sentence-transformers files; 'latent':"
        " the latent attention layer stored with the weights. A value that differs from these files"
        " requires overrides: [pooling].",
    )
    end_token: str | None = Field(
        default=None,
        description="Token that ended every input in the model's training; it is added if the"
        " tokenizer does not add it. Empty text: no token; null: as in the tokenizer's files.",
    )
    adapter: str | None = Field(
        default=None,
        description="Folder (absolute, or relative to the working directory) of a LoRA adapter in"
        " peft's format, which is merged into the weights.",
    )
    bidirectional: bool = Field(
        default=False,
        description="Whether the model is a decoder whose tokens attend in both directions.",
    )
    attention: Literal["eager", "sdpa", "flash_attention_2"] | None = Field(
        default=None, description="Attention kernel; null: the fastest that the model supports."
    )
    max_length: PositiveInt = Field(
        description="Maximum input length in tokens; longer inputs are truncated."
    )
    batch_size: PositiveInt = Field(default=32, description="Number of texts per batch.")

    @model_validator(mode="after")
    def _check_combinations(self) -> Self:
        # sentence-transformers does not pass code_revision on to the model class.
        if self.code_revision and self.pooling == "checkpoint":
            raise ValueError("'code_revision' needs a 'pooling' other than 'checkpoint'")
        if self.adapter and self.must_be_unpacked:
            raise ValueError("'adapter' needs a base model in safetensors")
        return self

    def with_inputs(self, inputs: Inputs, device: Device | None = None) -> "ConfiguredEmbedder":
        """Return the entry that jobs receive, for the given inputs and device.

        Args:
            inputs: Format of queries and documents: `paper` for the format in models.yaml,
                `released` for the format in the code of IdioLink's authors.
            device: Device to embed on; None: a CUDA GPU if there is one, otherwise the CPU.
        """
        fields = dict(self)
        if inputs == "released":
            fields |= RELEASED_INPUTS.get(self.published_as or "", {})
        return ConfiguredEmbedder(**fields | {"device": device})


class ConfiguredEmbedder(EmbedderEntry):
    """Entry of an embedder as jobs receive it, with fields that models.yaml does not have.

    Attributes:
        span_instruction_format: Format for queries embedded by their span; None for the format of
            other queries.
        span_query_prefix: Prefix of queries embedded by their span; None for the prefix of other
            queries.
        device: Device to embed on; None: a CUDA GPU if there is one, otherwise the CPU.
    """

    span_instruction_format: InstructionFormat | None = None
    span_query_prefix: str | None = None
    device: Device | None = None

    def document_spec(self) -> str:
        """Return the `execution_spec` without `device` and the fields that affect only queries.

        Because jobs that embed documents receive this spec, all query formats share the vectors of
        documents.
        """
        return self._spec("device", *_FIELDS_OF_PLAIN_QUERIES, *_FIELDS_OF_INSTRUCTED_QUERIES)

    def training_spec(self, *, instructed: bool) -> str:
        """Return the `execution_spec` without the fields that training does not use.

        The field `device` is omitted because training never runs on Apple's GPU.

        Args:
            instructed: Whether the queries for training have instructions. The fields for the other
                kind of queries are omitted.
        """
        unused = _FIELDS_OF_PLAIN_QUERIES if instructed else _FIELDS_OF_INSTRUCTED_QUERIES
        return self._spec("device", *unused)
