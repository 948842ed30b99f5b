"""What a language model is: entries of kind llm."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, field_serializer, model_validator

from pieline.core.settings import Settings
from pieline.models.entry import ModelEntry

Parameter = Literal[
    "temperature",
    "top_p",
    "top_k",
    "max_tokens",
    "seed",
    "response_format",
    "reasoning_effort",
    "stop",
    "presence_penalty",
    "frequency_penalty",
]
"""A request parameter by the name that litellm gives it for every provider."""


class Prices(Settings):
    """US dollars per million tokens."""

    input: float = Field(ge=0)
    output: float = Field(ge=0)


class LLMEntry(ModelEntry):
    """A language model that is asked (IdioTS, section 4.1; ID10M-JAM, appendix I).

    Its weights are behind an `api` (a provider over the network), a GGUF file inside an installed
    Python `package` (`package` and `file`), or a GGUF `file` on disk (`path`, and `file` in it).
    """

    kind: Literal["llm"]
    source: Literal["api", "package", "file"]
    litellm_id: str = Field(
        min_length=1,
        description="Provider prefix and checkpoint as litellm spells it; 'openai/<name>' of a "
        "local model.",
    )
    provider: str = Field(
        min_length=1, description="Whose limits apply: a key of llm.providers in config.yaml."
    )
    api_base: str | None = Field(
        default=None, description="Address of an OpenAI-compatible endpoint, not the provider's."
    )
    api_key_env: str | None = Field(
        default=None, description="Environment variable that holds the key, where one is needed."
    )
    accepts: frozenset[Parameter] = Field(
        description="Parameters that the provider accepts; others are not sent."
    )
    defaults: dict[Parameter, int | float | str] | None = Field(
        default=None,
        description="Parameters that litellm or the provider sends where a run asks for none.",
    )
    system_role: Literal["user"] | None = Field(
        default=None, description="Role in which system turns are sent, where it is another."
    )
    prices: Prices | None = Field(default=None, description="Of a model that costs something.")
    max_output_tokens: int | None = Field(
        default=None,
        ge=1,
        description="Longest answer, with its reasoning: bounds the cost without max_tokens.",
    )
    reasoning: bool = Field(default=False, description="Whether it thinks before it answers.")
    retired: str | None = Field(
        default=None, description="Why the checkpoint cannot be asked any more."
    )
    package: str | None = None
    path: Path | None = None
    file: str | None = None
    weights_sha256: str | None = Field(
        default=None,
        pattern="^[0-9a-f]{64}$",
        description="Of the GGUF file: is checked and part of every question's key.",
    )
    context_length: int = Field(
        default=4096, ge=64, description="Tokens of prompt and answer together, of a local model."
    )
    threads: int = Field(default=1, ge=1, description="CPU threads of a local model.")

    @model_validator(mode="after")
    def _check_source(self) -> Self:
        if self.source == "package" and not (self.package and self.file):
            raise ValueError("source: package needs package and file")
        if self.source == "file" and not self.path:
            raise ValueError("source: file needs path")
        if self.source == "api" and not (self.api_key_env or self.api_base):
            raise ValueError("source: api needs api_key_env or api_base")
        if self.source != "api" and (self.api_base or self.api_key_env or self.prices):
            raise ValueError("a local model takes no api_base, api_key_env or prices")
        return self

    @property
    def is_local(self) -> bool:
        """Whether this machine runs the model."""
        return self.source != "api"

    @property
    def checkpoint(self) -> str:
        """What answers: the litellm id, and for local weights the start of their digest.

        Weights whose digest is `unknown` are not asked, and no recording is found for them.
        """
        if self.weights_sha256 or self.is_local:
            return f"{self.litellm_id}@sha256:{(self.weights_sha256 or 'unknown')[:16]}"
        return self.litellm_id

    def accepted(self, wanted: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Split wanted parameters into those sent (by name) and the names of those dropped.

        A parameter whose value is None was not asked for: it is not dropped, and sent only if it is
        among the `defaults`.
        """
        asked = {name: value for name, value in sorted(wanted.items()) if value is not None}
        accepts = set(map(str, self.accepts))
        dropped = tuple(name for name in asked if name not in accepts)
        sent = {str(name): value for name, value in (self.defaults or {}).items()}
        return sent | {name: asked[name] for name in asked if name in accepts}, dropped

    @field_serializer("accepts")
    def _sorted(self, accepts: frozenset[str]) -> list[str]:
        # A set has no order of its own, and an execution spec must not depend on the process.
        return sorted(accepts)
