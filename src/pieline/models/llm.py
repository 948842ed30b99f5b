"""What a language model is: entries of kind llm."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, field_serializer, model_validator

from pieline.core.settings import Settings, checked
from pieline.models.entry import ModelEntry, parse_entry

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


class LLMSpec(Settings):
    """One `kind: llm` entry of models.yaml.

    Attributes:
        label: the name that tables show.
        source: `api` (a provider over the network), `package` (a GGUF file inside an installed
            Python package) or `file` (a GGUF file on disk).
        litellm_id: provider prefix and checkpoint as litellm spells it; a local model is reached
            as `openai/<name>`.
        provider: whose limits apply; a key of `llm.providers` in config.yaml.
        api_base: address of an OpenAI-compatible endpoint; null for the provider's own.
        api_key_env: environment variable that holds the key; null where no key is needed.
        accepts: the parameters that the provider accepts; any other one is not sent.
        prices: null for a model that costs nothing.
        max_output_tokens: the most that the model can write in one answer, reasoning included;
            bounds the cost of a question that sends no `max_tokens`.
        reasoning: whether the model thinks before it answers.
        parameters: size as tables show it ("8B"); null where the maker does not tell.
        published_parameters, published_as: as in every entry of models.yaml.
        retired: why the checkpoint cannot be asked any more; null while it can.
        package, path, file: where the GGUF file is (`package` + `file`, or `path` [+ `file`]).
        weights_sha256: digest of the GGUF file; when given it is checked and enters every key.
        context_length: tokens of prompt and answer together, for a local model.
        threads: CPU threads, for a local model.
    """

    kind: Literal["llm"] = "llm"
    label: str = Field(min_length=1)
    source: Literal["api", "package", "file"]
    litellm_id: str = Field(min_length=1)
    provider: str = Field(min_length=1)
    api_base: str | None = None
    api_key_env: str | None = None
    accepts: frozenset[Parameter]
    prices: Prices | None = None
    max_output_tokens: int | None = Field(default=None, ge=1)
    reasoning: bool = False
    parameters: str | None = None
    published_parameters: str | None = None
    published_as: str | None = None
    licence: str | None = None
    retired: str | None = None
    notes: str | None = None
    package: str | None = None
    path: Path | None = None
    file: str | None = None
    weights_sha256: str | None = Field(default=None, pattern="^[0-9a-f]{64}$")
    context_length: int = Field(default=4096, ge=64)
    threads: int = Field(default=1, ge=1)

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
        """What answers: the litellm id, and for pinned local weights the start of their digest."""
        if self.weights_sha256:
            return f"{self.litellm_id}@sha256:{self.weights_sha256[:16]}"
        return self.litellm_id

    def accepted(self, wanted: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Split wanted parameters into those sent (by name) and the names of those dropped.

        A parameter whose value is None was not asked for: it is neither sent nor dropped.
        """
        asked = {name: value for name, value in sorted(wanted.items()) if value is not None}
        accepts = set(map(str, self.accepts))
        sent = {name: value for name, value in asked.items() if name in accepts}
        return sent, tuple(name for name in asked if name not in sent)


def load_spec(entry: Mapping[str, Any], *, where: str) -> LLMSpec:
    """Check one `kind: llm` entry.

    Raises:
        UserError: a field is missing, unknown or wrong; names every such field.
    """
    return checked(LLMSpec, entry, where)


class LLMEntry(LLMSpec, ModelEntry):
    """A language model that is asked (IdioTS, section 4.1; ID10M-JAM, appendix I)."""

    kind: Literal["llm"]
    licence: str = Field(description="Licence of the weights, SPDX where there is an identifier.")

    @field_serializer("accepts")
    def _sorted(self, accepts: frozenset[str]) -> list[str]:
        # A set has no order of its own, and an execution spec must not depend on the process.
        return sorted(accepts)


def parse_llm_spec(text: str, *, name: str) -> LLMEntry:
    """The language model that an `execution_spec` describes.

    Args:
        text: the spec.
        name: its name in models.yaml, which messages show.

    Raises:
        UserError: the text is no such spec.
    """
    return parse_entry(text, LLMEntry, {"label": name, "licence": ""})
