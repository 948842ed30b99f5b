"""What a language model is and how it may be asked: entries of models.yaml and `llm:` settings."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from pieline.errors import UserError

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


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


_E = TypeVar("_E", bound=_Entry)


class Prices(_Entry):
    """US dollars per million tokens."""

    input: float = Field(ge=0)
    output: float = Field(ge=0)


class LLMSpec(_Entry):
    """One `kind: llm` entry of models.yaml.

    Attributes:
        label: the name that tables show.
        source: `api` (a provider over the network), `package` (a GGUF file inside an installed
            Python package) or `file` (a GGUF file on disk).
        litellm_id: provider prefix and checkpoint as litellm spells it; a local model is reached
            as `openai/<name>`.
        provider: whose limits apply; a key of `LLMSettings.providers`.
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


class ProviderLimits(_Entry):
    """What one provider allows one account; null is no limit."""

    concurrency: int = Field(default=8, ge=1, le=256)
    requests_per_minute: int | None = Field(default=None, ge=1)
    tokens_per_minute: int | None = Field(default=None, ge=1)


class LLMSettings(_Entry):
    """How language models may be asked: the `llm:` section of config.yaml.

    Attributes:
        mode: `record` reads recordings and asks what is missing; `replay` never asks; `fresh` asks
            everything anew and then replaces the recordings.
        max_cost_usd: most that all runs with this recordings folder may spend together. The
            default of 0 asks nothing that costs money.
        timeout_s: seconds for one attempt, from sending to the last byte.
        max_attempts: attempts for one question before it counts as failed.
        backoff_s: scale of the random exponential wait between attempts.
        max_wait_s: longest wait that a Retry-After header is followed for.
        providers: limits by provider; the entry `default` serves those not listed.
        recordings_folder: holds all recordings, the spending ledger and the lock files.
    """

    mode: Literal["record", "replay", "fresh"] = "record"
    max_cost_usd: float = Field(default=0.0, ge=0)
    timeout_s: float = Field(default=120.0, gt=0)
    max_attempts: int = Field(default=6, ge=1)
    backoff_s: float = Field(default=1.0, gt=0)
    max_wait_s: float = Field(default=300.0, gt=0)
    providers: dict[str, ProviderLimits] = Field(default_factory=dict)
    recordings_folder: Path = Path("recordings")

    def limits(self, provider: str) -> ProviderLimits:
        """The limits of `provider`, else those of `default`."""
        return self.providers.get(provider) or self.providers.get("default") or ProviderLimits()


def load_spec(entry: Mapping[str, Any], *, where: str) -> LLMSpec:
    """Check one `kind: llm` entry.

    Raises:
        UserError: a field is missing, unknown or wrong; names every such field.
    """
    return _checked(LLMSpec, entry, where)


def load_settings(entry: Mapping[str, Any], *, where: str) -> LLMSettings:
    """Check the `llm:` section of a configuration.

    Raises:
        UserError: a field is unknown or wrong; names every such field.
    """
    return _checked(LLMSettings, entry, where)


def _checked(kind: type[_E], entry: Mapping[str, Any], where: str) -> _E:
    try:
        return kind.model_validate(dict(entry))
    except ValidationError as error:
        problems = [
            f"{'.'.join(map(str, problem['loc'])) or 'entry'}: {problem['msg']}"
            for problem in error.errors(include_url=False, include_input=False)
        ]
        raise UserError("; ".join(problems), where=where) from None
