"""Define entries of kind embedder."""

from typing import ClassVar, Literal, Self

from pydantic import Field, PositiveInt, model_validator

from pieline.core.settings import Settings
from pieline.models.entries import CheckpointEntry

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
    """Differences between the inputs in IdioLink's released code and those of the entry.

    The last two fields apply to queries embedded by their span; null: as for other queries.
    """

    instruction_format: InstructionFormat | None = None
    query_prefix: str | None = None
    passage_prefix: str | None = None
    span_instruction_format: InstructionFormat | None = None
    span_query_prefix: str | None = None


_OF_INSTRUCTED_QUERIES = ("instruction_format", "span_instruction_format")
_OF_PLAIN_QUERIES = ("query_prefix", "span_query_prefix")


class EmbedderEntry(CheckpointEntry):
    """A text-embedding model that sentence-transformers loads (IdioLink, section 5.2, Table 6)."""

    UNSAID: ClassVar = {
        **CheckpointEntry.UNSAID,
        "trained_with_instructions": False,
        "instruction_format": "instruct_query",
    }
    kind: Literal["embedder"]
    trained_with_instructions: bool = Field(description="Its group in IdioLink's Table 2.")
    instruction_format: InstructionFormat = Field(
        description="How instruction and query become one text (IdioLink, appendix B)."
    )
    query_prefix: str = Field(default="", description="Put before a query without instruction.")
    passage_prefix: str = Field(default="", description="Put before a document.")
    span_instruction_format: InstructionFormat | None = Field(
        default=None, description="The same where the query is embedded by its span; null: alike."
    )
    span_query_prefix: str | None = Field(
        default=None, description="The same where the query is embedded by its span; null: alike."
    )
    released_inputs: ReleasedInputs | None = Field(
        default=None,
        description="What the released code writes otherwise (idiolink.inputs: released).",
    )
    pooling: Literal["checkpoint", "mean", "cls", "lasttoken", "latent"] = Field(
        default="checkpoint",
        description="'checkpoint': as its sentence-transformers files say; 'latent': the latent "
        "attention layer that lies beside its weights.",
    )
    pool_prefixes: bool = Field(
        default=True,
        description="Whether the model's own pooling counts the tokens of its prefixes.",
    )
    end_token: str | None = Field(
        default=None,
        description="Token that ended every input in training. It is added where the tokenizer adds"
        " none; an empty text says that there is none. Null: what the tokenizer's files say.",
    )
    adapter: str | None = Field(
        default=None,
        description="Folder with a LoRA adapter as peft saves it, which is added to the weights;"
        " absolute or counted from the working directory.",
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
    device: Device | None = Field(
        default=None,
        description="'mps': embed on Apple's GPU, whose last digits differ; null: on a CUDA GPU"
        " where there is one, or else on the CPU.",
    )

    @model_validator(mode="after")
    def _pinned_code_is_loaded(self) -> Self:
        # sentence-transformers does not pass code_revision on to the model class.
        if self.code_revision and self.pooling == "checkpoint":
            raise ValueError("'code_revision' needs a 'pooling' other than 'checkpoint'")
        if self.adapter and self.must_be_unpacked:
            raise ValueError("'adapter' needs a base model in safetensors")
        return self

    def with_inputs(self, inputs: Inputs) -> Self:
        """Return the entry with the inputs of the paper or of the released code."""
        if inputs == "paper" or self.released_inputs is None:
            return self
        return self.model_copy(update=self.released_inputs.model_dump(exclude_unset=True))

    def document_spec(self) -> str:
        """Return the `execution_spec` without the fields that affect only queries.

        Documents are embedded once for all of them.
        """
        return self._spec("device", *_OF_PLAIN_QUERIES, *_OF_INSTRUCTED_QUERIES)

    def training_spec(self, *, instructed: bool) -> str:
        """Return the `execution_spec` without the query fields that the training does not use.

        `device` is omitted because training never runs on Apple's GPU.
        """
        return self._spec("device", *(_OF_PLAIN_QUERIES if instructed else _OF_INSTRUCTED_QUERIES))
