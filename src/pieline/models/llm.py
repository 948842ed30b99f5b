"""Define entries for language models that answer questions."""

import hashlib
import json
import re
from collections.abc import Collection, Iterator, Mapping
from datetime import date
from fnmatch import fnmatchcase
from ipaddress import IPv6Address, ip_address
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    Field,
    JsonValue,
    StrictFloat,
    StrictInt,
    field_serializer,
    field_validator,
    model_validator,
    with_config,
)
from typing_extensions import TypedDict  # pydantic requires it below Python 3.12

from pieline.core.settings import Settings
from pieline.models.entries import ModelEntry, check_hub_name
from pieline.models.servers import CUSTOM, FOLDER, GGUF, PLACEHOLDERS, SERVERS, custom_command

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
"""Name of a request parameter, as spelled by litellm."""

_Number = StrictInt | StrictFloat


@with_config(extra="forbid")
class Parameters(TypedDict, total=False):
    """Request parameters with their values."""

    temperature: Annotated[_Number, Field(ge=0, description="Sampling temperature.")]
    top_p: Annotated[_Number, Field(gt=0, le=1, description="Probability mass to sample from.")]
    top_k: Annotated[
        StrictInt, Field(ge=0, description="Number of most likely tokens to sample from.")
    ]
    max_tokens: Annotated[StrictInt, Field(gt=0, description="Maximum length of an answer.")]
    seed: Annotated[StrictInt, Field(description="Random seed of the provider.")]
    response_format: Annotated[dict[str, JsonValue], Field(description="Format of an answer.")]
    reasoning_effort: Annotated[
        str, Field(description="Reasoning effort in litellm's terms, such as low.")
    ]
    stop: Annotated[str | list[str], Field(description="Texts that end an answer.")]
    presence_penalty: Annotated[
        _Number, Field(description="Penalty for tokens that have occurred.")
    ]
    frequency_penalty: Annotated[
        _Number, Field(description="Penalty for tokens, in proportion to their frequency.")
    ]


def _check_variable(name: str) -> str:
    """Return the name of an environment variable; raise a `ValueError` for any other text."""
    # Do not repeat the value: it may be the key itself, which must not be logged.
    if not re.fullmatch("[A-Z_][A-Z0-9_]{0,79}", name):
        raise ValueError("should be the name of an environment variable (A-Z, 0-9 and _)")
    return name


Variable = Annotated[str, AfterValidator(_check_variable)]


def check_url(value: str) -> str:
    """Return a URL of a server unchanged.

    Raises:
        ValueError: The value is not an HTTP URL with a host.
    """
    # A user and password may precede the host. The message must not repeat them.
    without_password = value.rpartition("@")[2]
    try:
        parts = urlsplit(value)
        is_url = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_url = False
    if not is_url or re.search(r"\s", value):
        raise ValueError(
            f"should be an address that starts with http:// or https:// ({without_password!r})"
        )
    return value


Url = Annotated[str, AfterValidator(check_url)]


def _check_address(value: str) -> str:
    """Return a URL, or `$` and the name of a variable; raise a `ValueError` for any other text."""
    if value.startswith("$"):
        return f"${_check_variable(value[1:])}"
    return check_url(value)


Address = Annotated[str, AfterValidator(_check_address)]
"""URL, or `$NAME` for the environment variable NAME that contains the URL."""


class Prices(Settings):
    """Prices in US dollars per million tokens."""

    input: float = Field(ge=0, description="Price of input, in US dollars per million tokens.")
    output: float = Field(
        ge=0,
        description="Price of output and thinking tokens, in US dollars per million tokens; if the"
        " two prices differ, the higher one.",
    )
    cached_input: float | None = Field(
        default=None, ge=0, description="Price of input read from the cache; null: same as input."
    )
    cache_write: float | None = Field(
        default=None, ge=0, description="Price of input written to the cache; null: same as input."
    )

    @property
    def highest(self) -> "Prices":
        """Prices with the highest of the three prices of input as the price of all input."""
        input_prices = self.input, self.cached_input or 0.0, self.cache_write or 0.0
        return Prices(input=max(input_prices), output=self.output)


class LLMEntry(ModelEntry):
    """Entry for a language model to query (IdioTS, section 4.1; ID10M-JAM, appendix I).

    The model's `source` is one of the following; except for `api`, the job starts the `server` that
    the entry names:

    - `api`: a provider over the network.
    - `package`: an installed Python package with a GGUF file at `path`.
    - `folder`: a GGUF file or a folder at `path`.
    - `hub`: a `repository` on the Hub at a `revision`, or the GGUF file at `path` in it.
    """

    MAY_HAVE_BRACES: ClassVar = ("body", "chat_template", "server")
    kind: Literal["llm"] = Field(description="Kind of the model: a language model to query.")
    source: Literal["api", "package", "folder", "hub"] = Field(
        description="Location of the model: behind an API, in a Python package, in a local file or"
        " folder, or on the Hub."
    )
    litellm_id: str = Field(
        min_length=1,
        description="Provider prefix and checkpoint in litellm's spelling; 'openai/<name>' for a"
        " local model, 'openai/responses/<name>' to use OpenAI's /responses.",
    )
    answers_as: tuple[str, ...] | None = Field(
        default=None,
        min_length=1,
        description="Model names that responses may state, as shell patterns ('*' also accepts a"
        " response without a name); null: the litellm_id without its prefix, or any name for a"
        " local model.",
    )
    answers_from: tuple[str, ...] | None = Field(
        default=None,
        min_length=1,
        description="Other servers whose recorded answers are accepted for this model, as shell"
        " patterns ('http://node*:8000').",
    )
    provider: str = Field(
        min_length=1, description="Provider whose limits apply (llm.providers in config.yaml)."
    )
    api_base: Address | None = Field(
        default=None,
        description="Address of an OpenAI-compatible endpoint, or $NAME for the environment"
        " variable that contains it; null: the provider's default.",
    )
    api_key_env: Variable | None = Field(
        default=None, description="Environment variable with the API key, if one is needed."
    )
    accepts: frozenset[Parameter] = Field(
        description="Parameters that the provider accepts; others are not sent."
    )
    defaults: Parameters | None = Field(
        default=None,
        description="Parameters that are sent with every request unless the run sets them.",
    )
    body: dict[str, JsonValue] | None = Field(
        default=None,
        min_length=1,
        description="Raw fields that are merged into the body of each request as written. They are"
        " part of each question's key.",
    )
    system_role: Literal["user"] | None = Field(
        default=None, description="Role in which system turns are sent; null: system."
    )
    prices: Prices | Literal["free"] | None = Field(
        default=None,
        description="Prices of the model; required with an API key or a remote api_base. 'free':"
        " the model costs nothing.",
    )
    max_output_tokens: int | None = Field(
        default=None,
        ge=1,
        description="Maximum number of tokens of an answer, including reasoning. It limits the cost"
        " if no max_tokens is sent.",
    )
    reasoning: bool = Field(default=False, description="Whether this is a reasoning model.")
    ends: date | Literal["past"] | None = Field(
        default=None,
        description="Date (YYYY-MM-DD) from which the provider no longer serves the checkpoint, or"
        " 'past' if this date is unknown and has passed. From this date on, the model is queried"
        " only through a gateway (llm.api_bases in config.yaml).",
    )
    package: str | None = Field(
        default=None, description="Import name of the package that contains the weights."
    )
    path: Path | None = Field(
        default=None,
        description="File or folder of the weights. For a package or the Hub: a GGUF file in the"
        " package or repository; for a folder: a folder or GGUF file, absolute or relative to the"
        " working directory.",
    )
    weights_sha256: str | None = Field(
        default=None,
        pattern="^[0-9a-f]{64}$",
        description="SHA-256 of the GGUF file, or for a folder, of the output of `sha256sum` for"
        " its files. The digest is verified, and is part of each question's key.",
    )
    repository: str | None = Field(default=None, description="Repository on the Hub.")
    revision: str | None = Field(
        default=None,
        pattern="^[0-9a-f]{40}$",
        description="Commit on the Hub, which is required to query the model, and is part of each"
        " question's key.",
    )
    pickled: Literal[True] | None = Field(
        default=None, description="true: the commit contains the weights only as a pickle file."
    )
    server: str | None = Field(
        default=None,
        description="'llama.cpp' (the default for GGUF files), 'vllm', or the command line of"
        " another OpenAI-compatible server, with {checkpoint}, {port} and {gpus}.",
    )
    dtype: Literal["float32", "bfloat16", "float16"] | None = Field(
        default=None, description="Data type in which vllm computes."
    )
    chat_template: str | None = Field(
        default=None,
        description="Chat template (Jinja); null: the template that the weights contain.",
    )
    gpus: int | None = Field(
        default=None,
        ge=0,
        description="Number of GPUs over which the model is split; null: one for a large model.",
    )
    slots: int | None = Field(
        default=None,
        ge=1,
        le=256,
        description="Maximum number of concurrent questions to the server; null: 1.",
    )
    context_length: int = Field(
        default=4096,
        ge=64,
        description="Maximum number of tokens of prompt and answer together, for llama.cpp and"
        " vllm.",
    )

    @field_validator("source", mode="before")
    @classmethod
    def _check_renamed_source(cls, source: Any) -> Any:
        if source == "file":
            raise ValueError("'file' is now 'folder', also for a GGUF file")
        return source

    @field_validator("body", mode="before")
    @classmethod
    def _parse_body(cls, body: Any) -> Any:
        # Specs contain the body as text (see `_serialize_body`).
        return json.loads(body) if isinstance(body, str) else body

    @model_validator(mode="after")
    def _check_body(self) -> Self:
        # Each run sets the parameters in `accepts` and `defaults`.
        set_by_run = {normalized(name) for name in (*self.accepts, *(self.defaults or {}))}
        for name in self._names_in_body():
            if normalized(name) in _NOT_RAW:
                raise ValueError(f"body: an entry must not set {name}")
            if normalized(name) in set_by_run:
                raise ValueError(f"body: {name} is also in accepts or defaults")
        writes_cache = "cache_control" in json.dumps(self.body)
        if writes_cache and self.paid and self.paid.cache_write is None:
            raise ValueError("body: cache_control needs prices.cache_write")
        return self

    def _names_in_body(self) -> Iterator[str]:
        """Yield the names of the fields in `body`, including those in Gemini's generationConfig."""
        for name, value in (self.body or {}).items():
            yield name
            if name == "generationConfig" and isinstance(value, dict):
                yield from value

    @model_validator(mode="after")
    def _check_responses(self) -> Self:
        unsupported = set(self.accepts) - _PARAMETERS_OF_RESPONSES
        if self.uses_responses and unsupported:
            names = ", ".join(sorted(unsupported))
            raise ValueError(f"accepts: /responses does not support {names}")
        return self

    @model_validator(mode="after")
    def _check_source(self) -> Self:
        required = {
            "package": ("package", "path"),
            "folder": ("path",),
            "hub": ("repository",),
            "api": (),
        }[self.source]
        if not all(getattr(self, name) for name in required):
            raise ValueError(f"source: {self.source} needs {' and '.join(required)}")
        if self.source == "hub":
            # Only a GGUF file has a path in its repository.
            path = None if self.is_gguf else self.path
            check_hub_name("repository", str(self.repository), path)
        if self.source == "api":
            if not (self.api_key_env or self.api_base):
                raise ValueError("source: api needs api_key_env or api_base")
        elif self.api_base or self.api_key_env or self.prices:
            raise ValueError("a local model must not have api_base, api_key_env or prices")
        if self.is_local and (self.uses_responses or not self.litellm_id.startswith("openai/")):
            raise ValueError("the litellm_id of a local model must be openai/<name>")
        return self

    @model_validator(mode="after")
    def _check_template(self) -> Self:
        is_jinja = re.search(r"{[{%]", self.chat_template or "")
        if self.chat_template and not is_jinja:
            raise ValueError("chat_template must be a Jinja template, not the name of one")
        return self

    @model_validator(mode="after")
    def _check_serving(self) -> Self:
        set_fields = {name for name in _SERVING if getattr(self, name) is not None}
        if self.is_local:
            self._check_pin()
            self._check_server(set_fields)
        elif set_fields:
            raise ValueError(f"{min(set_fields)} is only for local models, not for source: api")
        return self

    def _check_pin(self) -> None:
        """Raise a `ValueError` if a local model has a pin that does not apply to its source."""
        if self.source == "hub" and self.weights_sha256 is not None:
            raise ValueError("source: hub is pinned by revision, not by weights_sha256")
        has_revision = self.repository is not None or self.revision is not None
        if self.source != "hub" and has_revision:
            raise ValueError(f"source: {self.source} is pinned by weights_sha256, not by revision")

    def _check_server(self, set_fields: Collection[str]) -> None:
        """Raise a `ValueError` if the server of a local model does not support its entry.

        Args:
            set_fields: Fields in `_SERVING` that are not null.
        """
        server = SERVERS.get(self.serves_with, CUSTOM)
        server_name = self.serves_with
        if server is CUSTOM:
            server_name = "a custom command"
            # Only to check the command.
            custom_command(self.serves_with, **dict.fromkeys(PLACEHOLDERS, ""))
        weights = GGUF if self.is_gguf else FOLDER
        if weights not in server.serves:
            fitting = [name for name, other in SERVERS.items() if weights in other.serves]
            raise ValueError(
                f"server: {server_name} does not serve {weights}; {' or '.join(fitting)} does"
            )
        ignored = _PASSED_TO_SERVER.intersection(set_fields) - server.fields
        if ignored:
            raise ValueError(f"server: {server_name} does not support {min(ignored)}")
        missing = server.needs.difference(set_fields)
        if missing:
            raise ValueError(
                f"server: {server_name} needs {min(missing)}, which it would otherwise choose"
                " silently"
            )
        if server.supported_parameters is not None:
            unsupported = set(self.accepts) - server.supported_parameters
            if unsupported:
                names = ", ".join(sorted(unsupported))
                raise ValueError(f"accepts: {server_name} does not support {names}")

    @property
    def is_local(self) -> bool:
        """Whether jobs run the model instead of calling a provider."""
        return self.source != "api"

    @property
    def uses_responses(self) -> bool:
        """Whether the model is queried through OpenAI's /responses endpoint."""
        return self.litellm_id.startswith("openai/responses/")

    @property
    def is_gguf(self) -> bool:
        """Whether the weights are a single GGUF file."""
        return str(self.path).endswith(".gguf")

    @property
    def serves_with(self) -> str:
        """Name or command line of a local model's server; llama.cpp if the entry names none."""
        return self.server or "llama.cpp"

    @property
    def needs_template(self) -> bool:
        """Whether the weights must contain a chat template.

        Otherwise, the entry has a chat template, or a custom server may have one.
        """
        return not self.chat_template and self.serves_with in SERVERS

    @property
    def shares_server(self) -> bool:
        """Whether one server answers all questions of a rule, because loading the model is slow."""
        return self.source in {"folder", "hub"}

    @property
    def paid(self) -> Prices | None:
        """Prices of the model; None if it is free or has no prices."""
        return self.prices if isinstance(self.prices, Prices) else None

    @property
    def cost_is_unknown(self) -> bool:
        """Whether the entry has no prices although answers may cost money.

        Local models are free, and so is an endpoint on this machine that needs no API key.
        """
        if self.is_local or self.prices is not None:
            return False
        return self.api_key_env is not None or not is_loopback(self.api_base or "")

    @property
    def retired(self) -> bool:
        """Whether the model was no longer served when its entry was written."""
        return self.ends == "past"

    def end_reason(self, today: date | None = None) -> str:
        """Return why the provider no longer serves the model; empty if the model is served.

        Args:
            today: Date to compare `ends` with (default: the current date).
        """
        if self.retired:
            return "the checkpoint is retired"
        has_ended = isinstance(self.ends, date) and self.ends <= (today or date.today())
        return f"the model ended on {self.ends}" if has_ended else ""

    @property
    def bills_thoughts(self) -> bool:
        """Whether the model may write thinking tokens, which are billed like output.

        Gemini models think from version 2.5 on
        (https://ai.google.dev/gemini-api/docs/thinking), even if the paper does not call them
        reasoning models.
        """
        return self.reasoning or self.litellm_id.startswith("gemini/")

    @property
    def checkpoint(self) -> str:
        """Identifier of the model in the keys of questions.

        For an API, the identifier is the litellm id. For a local model, it also contains the first
        16 digits of the weights' SHA-256 or commit, the GGUF file of a Hub repository, and the
        server, dtype and chat template of the entry. A model whose SHA-256 or commit is `unknown`
        is not queried and has no recordings.
        """
        if self.source == "hub":
            pin = f"@hub:{(self.revision or 'unknown')[:16]}"
        elif self.weights_sha256 or self.is_local:
            pin = f"@sha256:{(self.weights_sha256 or 'unknown')[:16]}"
        else:
            return self.litellm_id
        return "+".join([f"{self.litellm_id}{pin}", *self._serving_details()])

    def _serving_details(self) -> Iterator[str]:
        """Yield a text for each field of a local model, except the pin, that can change answers."""
        if self.source == "hub" and self.path:
            yield str(self.path)
        if self.serves_with not in SERVERS:
            yield f"own:{_short_digest(self.serves_with)}"
        elif self.serves_with != "llama.cpp":
            yield self.serves_with
        if self.dtype:
            yield self.dtype
        if self.chat_template:
            yield f"template:{_short_digest(self.chat_template)}"

    def accepts_model_name(self, name: str | None) -> bool:
        """Return whether a response may state this model name (None if it states none)."""
        default_pattern = "*" if self.is_local else api_model_name(self.checkpoint)
        patterns = self.answers_as or (default_pattern,)
        return any(name == pattern or fnmatchcase(name or "", pattern) for pattern in patterns)

    def accepts_origin(self, origin: str | None, asked_at: str | None) -> bool:
        """Return whether an answer of the server at `origin` is accepted.

        Args:
            origin: Origin of the server that answered; None in older recordings.
            asked_at: Origin of the queried server; None if it is not known.
        """
        if origin is None or asked_at is None or origin == asked_at:
            return True
        return any(fnmatchcase(origin, pattern) for pattern in self.answers_from or ())

    def split_parameters(
        self, parameters: Mapping[str, Any]
    ) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Return the parameters to send, and the names of those that the model does not accept.

        The parameters to send include `defaults`. Parameters with the value None are ignored.
        """
        accepted = {str(name) for name in self.accepts}
        sent = {str(name): value for name, value in (self.defaults or {}).items()}
        dropped = []
        for name, value in sorted(parameters.items()):
            if value is None:
                continue
            if name in accepted:
                sent[name] = value
            else:
                dropped.append(name)
        return sent, tuple(dropped)

    @field_serializer("accepts")
    def _serialize_accepts(self, accepts: frozenset[str]) -> list[str]:
        # The order of a set differs between processes, but the execution spec must not.
        return sorted(accepts)

    @field_serializer("body", when_used="json-unless-none")
    def _serialize_body(self, body: dict[str, JsonValue]) -> str:
        # A spec sorts the fields of objects, but the order of fields in a JSON schema matters.
        return json.dumps(body, ensure_ascii=False)


def api_model_name(checkpoint: str) -> str:
    """Return the model name that requests contain.

    Args:
        checkpoint: `LLMEntry.checkpoint`.
    """
    litellm_id = re.split("@(?:sha256|hub):", checkpoint, maxsplit=1)[0]
    return re.sub("^(?:openai/responses|[^/]*)/", "", litellm_id)


def normalized(field: str) -> str:
    """Return a field name in lower case without underscores: `maxtokens` for `maxTokens`."""
    return field.replace("_", "").lower()


_NOT_RAW = frozenset(
    {
        "model", "messages", "contents", "system", "systeminstruction", "input", "instructions",
        "stream", "background",  # change the format of the response
        "n", "candidatecount", "maxtokens", "maxcompletiontokens", "maxoutputtokens",  # cost
    }
)  # fmt: skip
"""Fields that `body` must not contain, as returned by `normalized`."""
_PARAMETERS_OF_RESPONSES = {
    "temperature",
    "top_p",
    "max_tokens",
    "response_format",
    "reasoning_effort",
}


_PASSED_TO_SERVER = frozenset({"chat_template", "dtype"})
"""Fields that are passed to the server of a local model when it is started."""
_SERVING = _PASSED_TO_SERVER | {"gpus", "repository", "revision", "server", "slots"}
"""Fields that only a local model may have."""


def _short_digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:8]


def is_loopback(address: str) -> bool:
    """Return whether the host of a URL is localhost or a loopback address."""
    host = (urlsplit(address).hostname or "").rstrip(".")
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        ip = ip_address(host)
    except ValueError:
        return False  # a host name
    # An IPv6 address can contain an IPv4 address: ::ffff:127.0.0.1.
    ipv4 = ip.ipv4_mapped if isinstance(ip, IPv6Address) else None
    return (ipv4 or ip).is_loopback or ip.is_unspecified
