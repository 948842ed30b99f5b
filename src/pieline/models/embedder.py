"""Entries of kind embedder."""

from typing import ClassVar, Literal

from pydantic import Field, PositiveInt

from pieline.models.checkpoint import CheckpointEntry

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
        return self._spec("query_prefix", "instruction_format")

    def training_spec(self, *, instructed: bool) -> str:
        """As `execution_spec`, without the way of writing queries that a training does not use."""
        return self._spec("query_prefix" if instructed else "instruction_format")
