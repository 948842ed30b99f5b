"""Define entries for embedders with local weights."""

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


class ReleasedInputs(Settings):
    """Input formats in IdioLink's released code that differ from those of the entry.

    The fields `span_*` apply to queries embedded by their span; if they are null, these queries are
    formatted like other queries.
    """

    instruction_format: InstructionFormat | None = Field(
        default=None, description="Format that combines instruction and query."
    )
    query_prefix: str | None = Field(
        default=None, description="Prefix of a query without an instruction."
    )
    passage_prefix: str | None = Field(default=None, description="Prefix of a document.")
    span_instruction_format: InstructionFormat | None = Field(
        default=None,
        description="Format for queries embedded by their span; null: instruction_format.",
    )
    span_query_prefix: str | None = Field(
        default=None, description="Prefix of queries embedded by their span; null: query_prefix."
    )


_OF_INSTRUCTED_QUERIES = ("instruction_format", "span_instruction_format")
_OF_PLAIN_QUERIES = ("query_prefix", "span_query_prefix")


class Prefixes(Settings):
    """Prefixes that a retrieval model expects before its texts."""

    query_prefix: str = Field(default="", description="Prefix of a query without an instruction.")
    passage_prefix: str = Field(default="", description="Prefix of a document.")


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
    span_instruction_format: InstructionFormat | None = Field(
        default=None,
        description="Format for queries embedded by their span; null: instruction_format.",
    )
    span_query_prefix: str | None = Field(
        default=None, description="Prefix of queries embedded by their span; null: query_prefix."
    )
    released_inputs: ReleasedInputs | None = Field(
        default=None,
        description="Input formats that differ in the released code (idiolink.inputs: released).",
    )
    pooling: Literal["checkpoint", "mean", "cls", "lasttoken", "latent"] = Field(
        default="checkpoint",
        description="'checkpoint': as set in the checkpoint's sentence-transformers files;"
        " 'latent': the latent attention layer stored with the weights. Other values than those in"
        " these files need overrides: [pooling].",
    )
    pool_prefixes: bool = Field(
        default=True,
        description="Whether the model's own pooling includes the tokens of prefixes.",
    )
    end_token: str | None = Field(
        default=None,
        description="Token at the end of every input in training, added unless the tokenizer adds"
        " it; empty text: no token; null: as in the tokenizer's files.",
    )
    adapter: str | None = Field(
        default=None,
        description="Folder of a LoRA adapter in peft's format, which is merged into the weights;"
        " absolute or relative to the working directory.",
    )
    bidirectional: bool = Field(
        default=False, description="Whether a decoder's tokens attend in both directions."
    )
    attention: Literal["eager", "sdpa", "flash_attention_2"] | None = Field(
        default=None, description="Attention kernel; null: the fastest that the model supports."
    )
    max_length: PositiveInt = Field(
        description="Maximum input length in tokens; longer inputs are truncated."
    )
    batch_size: PositiveInt = Field(default=32, description="Number of texts per batch.")
    device: Device | None = Field(
        default=None,
        description="'mps': embed on Apple's GPU, whose results differ in the last digits; null: on"
        " a CUDA GPU if there is one, otherwise on the CPU.",
    )

    @model_validator(mode="after")
    def _check_code_revision(self) -> Self:
        # sentence-transformers does not pass code_revision on to the model class.
        if self.code_revision and self.pooling == "checkpoint":
            raise ValueError("'code_revision' needs a 'pooling' other than 'checkpoint'")
        if self.adapter and self.must_be_unpacked:
            raise ValueError("'adapter' needs a base model in safetensors")
        return self

    def with_inputs(self, inputs: Inputs) -> Self:
        """Return the entry with the input formats of the paper or of the released code."""
        if inputs == "paper" or self.released_inputs is None:
            return self
        return self.model_copy(update=self.released_inputs.model_dump(exclude_unset=True))

    def document_spec(self) -> str:
        """Return the `execution_spec` without `device` and the fields that affect only queries.

        Documents are embedded only once for all query formats.
        """
        return self._spec("device", *_OF_PLAIN_QUERIES, *_OF_INSTRUCTED_QUERIES)

    def training_spec(self, *, instructed: bool) -> str:
        """Return the `execution_spec` without the fields that training does not use.

        The omitted fields are `device`, since training never runs on Apple's GPU, and the fields
        for queries with instructions or, if `instructed`, for queries without instructions.
        """
        return self._spec("device", *(_OF_PLAIN_QUERIES if instructed else _OF_INSTRUCTED_QUERIES))
