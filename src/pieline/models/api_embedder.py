"""Define entries for embedders behind an API."""

from typing import ClassVar, Literal

from pydantic import Field

from pieline.models.embedder import InstructionFormat, Prefixes
from pieline.models.llm import LLMEntry, Parameter


class ApiEmbedderEntry(LLMEntry, Prefixes):
    """Entry for an embedding model behind an OpenAI-compatible embeddings endpoint.

    As for language models, the entry has limits, prices and API keys. Answers have no output
    tokens.
    """

    SPEC_DEFAULTS: ClassVar = {**LLMEntry.SPEC_DEFAULTS, "trained_with_instructions": False}
    kind: Literal["embedder"] = Field(  # type: ignore[assignment]
        description="Kind of the model: an embedder."
    )
    source: Literal["api"] = Field(
        description="Always 'api'; embedders with local weights have other fields."
    )
    litellm_id: str = Field(
        pattern="^openai/.", description="'openai/<checkpoint>', whatever the provider is."
    )
    accepts: frozenset[Parameter] = Field(
        default=frozenset(), max_length=0, description="Must be empty; use `body` for raw fields."
    )
    max_output_tokens: Literal[0] = Field(
        default=0, description="Always 0, because an embedder writes no text."
    )
    trained_with_instructions: bool = Field(
        description="Whether the model was trained with instructions, which determines its group in"
        " IdioLink's Table 2."
    )
    instruction_format: InstructionFormat = Field(
        default="instruct_query",
        description="Format that combines instruction and query (IdioLink, appendix B).",
    )
