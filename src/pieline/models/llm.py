"""Define entries for language models that answer questions."""

import hashlib
import json
import re
from collections.abc import Mapping
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
    # Do not repeat the value: it may be the key itself, which must not be logged.
    if not re.fullmatch("[A-Z_][A-Z0-9_]{0,79}", name):
        raise ValueError("should be the name of an environment variable (A-Z, 0-9 and _)")
    return name


Variable = Annotated[str, AfterValidator(_check_variable)]


def check_url(value: str) -> str:
    """Return the URL of a server.

    Raises:
        ValueError: The value is not a URL with scheme and host.
    """
    # An address may contain a password, which the message must not repeat.
    shown = value.rpartition("@")[2]
    try:
        parts = urlsplit(value)
        is_url = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_url = False
    if not is_url or re.search(r"\s", value):
        raise ValueError(f"should be an address that starts with http:// or https:// ({shown!r})")
    return value


Url = Annotated[str, AfterValidator(check_url)]


def _check_address(value: str) -> str:
    if value.startswith("$"):
        return f"${_check_variable(value[1:])}"
    return check_url(value)


Address = Annotated[str, AfterValidator(_check_address)]
"""URL, or the name of an environment variable with a URL after a `$`."""


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
        """Prices whose `input` is the highest of all input prices."""
        inputs = self.input, self.cached_input or 0.0, self.cache_write or 0.0
        return Prices(input=max(inputs), output=self.output)


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
    def _body_of_spec(cls, body: Any) -> Any:
        return json.loads(body) if isinstance(body, str) else body

    @model_validator(mode="after")
    def _check_body(self) -> Self:
        of_run = {normalized(name) for name in (*self.accepts, *(self.defaults or {}))}
        for name, value in (self.body or {}).items():
            inner = value if name == "generationConfig" and isinstance(value, dict) else {}
            for each in (name, *inner):
                if normalized(each) in _NOT_RAW:
                    raise ValueError(f"body: an entry must not set {each}")
                if normalized(each) in of_run:
                    raise ValueError(f"body: {each} is also in accepts or defaults")
        caches = "cache_control" in json.dumps(self.body)
        if caches and self.paid and self.paid.cache_write is None:
            raise ValueError("body: cache_control needs prices.cache_write")
        if self.uses_responses and (unknown := set(self.accepts) - _OF_RESPONSES):
            names = ", ".join(sorted(unknown))
            raise ValueError(f"accepts: /responses does not support {names}")
        return self

    @model_validator(mode="after")
    def _check_source(self) -> Self:
        needed = {
            "package": ("package", "path"),
            "folder": ("path",),
            "hub": ("repository",),
            "api": (),
        }[self.source]
        if not all(getattr(self, name) for name in needed):
            raise ValueError(f"source: {self.source} needs {' and '.join(needed)}")
        if self.source == "hub":
            check_hub_name("repository", str(self.repository), None if self.is_gguf else self.path)
        if self.source == "api":
            if not (self.api_key_env or self.api_base):
                raise ValueError("source: api needs api_key_env or api_base")
        elif self.api_base or self.api_key_env or self.prices:
            raise ValueError("a local model must not have api_base, api_key_env or prices")
        if self.is_local and (self.uses_responses or not self.litellm_id.startswith("openai/")):
            raise ValueError("the litellm_id of a local model must be openai/<name>")
        if self.chat_template and not re.search(r"{[{%]", self.chat_template):
            raise ValueError("chat_template must be a Jinja template, not the name of one")
        self._check_serving()
        return self

    def _check_serving(self) -> None:
        """Raise a `ValueError` if the fields for serving do not fit the source or the server."""
        present = {name for name in _SERVING if getattr(self, name) is not None}
        if not self.is_local:
            if present:
                raise ValueError(f"{min(present)} is only for local models, not for source: api")
            return
        on_hub = self.source == "hub"
        if (self.weights_sha256 if on_hub else self.repository or self.revision) is not None:
            hub, local = "revision", "weights_sha256"
            pin, other = (hub, local) if on_hub else (local, hub)
            raise ValueError(f"source: {self.source} is pinned by {pin}, not by {other}")
        server, shown = SERVERS.get(self.serves_with, CUSTOM), self.serves_with
        if server is CUSTOM:
            shown = "a custom command"
            custom_command(self.serves_with, **dict.fromkeys(PLACEHOLDERS, ""))
        weights = GGUF if self.is_gguf else FOLDER
        if weights not in server.serves:
            fitting = " or ".join(name for name in SERVERS if weights in SERVERS[name].serves)
            raise ValueError(f"server: {shown} does not serve {weights}; {fitting} does")
        if ignored := present & _STARTED_WITH - server.fields:
            raise ValueError(f"server: {shown} does not support {min(ignored)}")
        if lacking := server.needs - present:
            raise ValueError(
                f"server: {shown} needs {min(lacking)}, which it would otherwise choose silently"
            )
        supported = server.supported_parameters
        if supported is not None and (unsupported := set(self.accepts) - supported):
            raise ValueError(f"accepts: {shown} does not support {', '.join(sorted(unsupported))}")

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
        """Whether the weights must include a chat template; custom servers may have their own."""
        return not self.chat_template and self.serves_with in SERVERS

    @property
    def shares_server(self) -> bool:
        """Whether all tasks of a kind share one server, since loading the model takes minutes."""
        return self.source in {"folder", "hub"}

    @property
    def paid(self) -> Prices | None:
        """Prices of the model; None if it is free or has no prices."""
        return self.prices if isinstance(self.prices, Prices) else None

    @property
    def cost_is_unknown(self) -> bool:
        """Whether answers may cost money although the entry has no prices.

        Without prices, only local models and endpoints without a key on the loopback interface are
        known to be free.
        """
        if self.is_local or self.prices is not None:
            return False
        return self.api_key_env is not None or not is_loopback(self.api_base or "")

    @property
    def retired(self) -> bool:
        """Whether the provider had ended the checkpoint before its entry was written."""
        return self.ends == "past"

    def end_reason(self, today: date | None = None) -> str:
        """Return why the provider no longer serves the checkpoint; empty if it does.

        `today` is the date to compare `ends` with (default: the current date).
        """
        if self.retired:
            return "the checkpoint is retired"
        is_over = isinstance(self.ends, date) and self.ends <= (today or date.today())
        return f"the model ended on {self.ends}" if is_over else ""

    @property
    def bills_thoughts(self) -> bool:
        """Whether thinking tokens are billed with answers.

        Gemini thinks from version 2.5 on, also models that the paper does not call reasoning models
        (https://ai.google.dev/gemini-api/docs/thinking).
        """
        return self.reasoning or self.litellm_id.startswith("gemini/")

    @property
    def checkpoint(self) -> str:
        """Identifier of the model in questions: the litellm id and, for pinned weights, a suffix.

        The suffix consists of the start of the weights' digest or commit, the GGUF file of a Hub
        repository, and the fields that can change answers: server, dtype and chat template. A model
        whose digest or commit is `unknown` is not queried and has no recordings.
        """
        if self.source == "hub":
            pin = f"@hub:{(self.revision or 'unknown')[:16]}"
        elif self.weights_sha256 or self.is_local:
            pin = f"@sha256:{(self.weights_sha256 or 'unknown')[:16]}"
        else:
            return self.litellm_id
        server = self.serves_with
        details = (
            str(self.path) if self.source == "hub" and self.path else None,
            server.replace("llama.cpp", "") if server in SERVERS else f"own:{_short(server)}",
            self.dtype,
            self.chat_template and f"template:{_short(self.chat_template)}",
        )
        return "+".join([f"{self.litellm_id}{pin}", *filter(None, details)])

    def accepts_model_name(self, name: str | None) -> bool:
        """Return whether the model name in a response (None if missing) is accepted."""
        wire = "*" if self.is_local else api_model_name(self.checkpoint)
        allowed = self.answers_as or (wire,)
        return any(name == each or fnmatchcase(name or "", each) for each in allowed)

    def accepts_origin(self, origin: str | None, asked_at: str | None) -> bool:
        """Return whether an answer of the server at `origin` is accepted.

        Args:
            origin: Origin of the server that answered; None in older recordings.
            asked_at: Origin of the queried server; None if it is not known.
        """
        known = origin is None or asked_at is None or origin == asked_at
        return known or any(fnmatchcase(str(origin), each) for each in self.answers_from or ())

    def split_parameters(
        self, parameters: Mapping[str, Any]
    ) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Return the parameters to send, including `defaults`, and the names of those to drop.

        Parameters are dropped if the model does not accept them, and ignored if they are None.
        """
        requested = {name: value for name, value in sorted(parameters.items()) if value is not None}
        accepts = set(map(str, self.accepts))
        dropped = tuple(name for name in requested if name not in accepts)
        sent = {str(name): value for name, value in (self.defaults or {}).items()}
        return sent | {name: requested[name] for name in requested if name in accepts}, dropped

    @field_serializer("accepts")
    def _sorted(self, accepts: frozenset[str]) -> list[str]:
        # The order of a set differs between processes, but an execution spec must be the same.
        return sorted(accepts)

    @field_serializer("body", when_used="json-unless-none")
    def _in_order(self, body: dict[str, JsonValue]) -> str:
        # Text, because a spec sorts fields by name, but the order of a schema's fields matters.
        return json.dumps(body, ensure_ascii=False)


def api_model_name(checkpoint: str) -> str:
    """Return the model name for requests, given `LLMEntry.checkpoint`."""
    name = re.split("@(?:sha256|hub):", checkpoint, maxsplit=1)[0]
    return re.sub("^(?:openai/responses|[^/]*)/", "", name)


def normalized(field: str) -> str:
    """Normalize the spelling of a field name: `max_tokens` and `maxTokens` become `maxtokens`."""
    return field.replace("_", "").lower()


_NOT_RAW = frozenset(
    {
        "model", "messages", "contents", "system", "systeminstruction", "input", "instructions",
        "stream", "background",  # change the format of the response
        "n", "candidatecount", "maxtokens", "maxcompletiontokens", "maxoutputtokens",  # cost
    }
)  # fmt: skip
"""Fields that `body` must not contain, with names as returned by `normalized`."""
_OF_RESPONSES = {"temperature", "top_p", "max_tokens", "response_format", "reasoning_effort"}


_STARTED_WITH = frozenset({"chat_template", "dtype"})
"""Fields that are passed to the server when it is started."""
_SERVING = _STARTED_WITH | {"gpus", "repository", "revision", "server", "slots"}


def _short(text: str) -> str:
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
    mapped = ip.ipv4_mapped if isinstance(ip, IPv6Address) else None
    return (mapped or ip).is_loopback or ip.is_unspecified
