"""Send a question to its provider and return the answer, with agno's LiteLLM model class.

agno provides a uniform interface to all providers on top of litellm. This module ensures that only
the question is sent (see `wire`), and keeps the fields that agno drops (finish reason, returned
model, fingerprint). Importing this module loads agno and litellm, which takes seconds, so only
`pieline.llm.client` imports this module, and only when an answer is missing.
"""

import errno
import json
import logging
import math
import os
import socket
import sys
from array import array
from base64 import b64encode
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from pieline.core.errors import UserError
from pieline.llm.answers import FILTERED, Answer, SentRequest, ToolCall
from pieline.llm.keys import redact
from pieline.llm.questions import Question
from pieline.llm.retries import MalformedResponseError, NotConnectedError, NotSentError
from pieline.llm.wire import difference, merge_fields, responses_body, shorten_request
from pieline.models.llm import LLMEntry

# Set these variables before the imports: no price list from the network, no telemetry, no `.env`
# file, and no debug output, which would contain API keys.
os.environ.update(
    LITELLM_LOCAL_MODEL_COST_MAP="True",
    LITELLM_MODE="PRODUCTION",
    LITELLM_LOG="ERROR",
    AGNO_TELEMETRY="false",
    AGNO_DEBUG="false",
)

import httpx
import litellm
from agno.models.litellm import LiteLLM
from agno.models.message import Message as AgnoMessage
from litellm.constants import openai_compatible_providers
from litellm.exceptions import ContentPolicyViolationError
from litellm.llms.custom_httpx.http_handler import AsyncHTTPHandler
from openai import AsyncOpenAI

litellm.suppress_debug_info = True
for _name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy", "agno", "agno-team", "agno-workflow"):
    logging.getLogger(_name).disabled = True
for _name in ("openai", "httpx", "httpcore", "aiohttp", "anthropic"):
    logging.getLogger(_name).setLevel(logging.WARNING)


@dataclass
class _Exchange:
    """State of one request.

    Attributes:
        question: Question to send.
        address: Scheme and host of the URL; empty until a request is made.
        sent: Request that was sent; None if none was sent.
        mismatch: Reason why the request was not sent; None if there is none.
        response: Response of the provider; None if there was none.
        problem: Reason why the response was rejected; None if there is none.
    """

    question: Question
    address: str = ""
    sent: SentRequest | None = None
    mismatch: str | None = None
    response: httpx.Response | None = None
    problem: str | None = None


_LARGEST_RESPONSE = 32 << 20
"""Maximum bytes of a decompressed response, about a thousand times the longest answer."""
_EXCHANGE: ContextVar[_Exchange] = ContextVar("exchange")


async def _check(request: httpx.Request) -> None:
    """Add the raw fields to a request, and check that its body matches the question.

    Raw fields are added here because litellm would map or drop some of them.

    Raises:
        ValueError: The body does not match the question, or the URL has query parameters.
        ConnectError: The exchange has already sent a request. litellm resends a request after a
            failed connection.
    """
    exchange = _EXCHANGE.get()
    if exchange.sent is not None:
        raise httpx.ConnectError("the connection failed", request=request)
    exchange.address = f"{request.url.scheme}://{request.url.netloc.decode()}"
    path, body = request.url.path, json.loads(await request.aread())
    try:
        body = merge_fields(body, exchange.question.body)
        exchange.mismatch = difference(exchange.question, path, body)
    except ValueError as error:
        exchange.mismatch = str(error)
    if request.url.query:
        exchange.mismatch = "has query parameters in its address"
    if exchange.mismatch:
        raise ValueError(exchange.mismatch)
    if exchange.question.body:
        request._content = json.dumps(body, ensure_ascii=False).encode()
        request.stream = httpx.ByteStream(request._content)
        request.headers["Content-Length"] = str(len(request._content))
    exchange.sent = shorten_request(exchange.question, path, body)


async def _keep(response: httpx.Response) -> None:
    """Read the body of a response.

    Raises:
        ReadError: The body has more than `_LARGEST_RESPONSE` bytes.
    """
    exchange = _EXCHANGE.get()
    exchange.response = response
    content = bytearray()
    async for piece in response.aiter_bytes():
        content += piece
        if len(content) > _LARGEST_RESPONSE:
            await response.aclose()
            exchange.problem = f"the response exceeds {_LARGEST_RESPONSE >> 20} MB, decompressed"
            raise httpx.ReadError(exchange.problem, request=response.request)
    response._content = _with_rounded_counts(bytes(content))


def _with_rounded_counts(content: bytes) -> bytes:
    """Return a response body with its token counts rounded up: litellm rejects fractions."""

    def rounded(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: rounded(item) for name, item in value.items()}
        return math.ceil(value) if isinstance(value, float) and math.isfinite(value) else value

    with suppress(ValueError):
        body = json.loads(content)
        for name in ("usage", "usageMetadata"):
            usage = body.get(name) if isinstance(body, dict) else None
            if isinstance(usage, dict) and json.dumps(usage) != json.dumps(rounded(usage)):
                return json.dumps(body | {name: rounded(usage)}).encode()
    return content


CHECKED_PROVIDERS = frozenset(map(str, openai_compatible_providers)) | {
    "anthropic", "bedrock_mantle", "compactifai", "custom_openai", "databricks", "gemini", "heroku",
    "lemonade", "minimax", "mistral", "nadir", "openai", "openrouter", "ovhcloud",
}  # fmt: skip
"""Providers for which litellm sends the requests with the client that the caller passes."""

_UNCHECKED = "litellm does not know the provider, or its requests cannot be checked"
_RESPONSES = "litellm asks this model through OpenAI's /responses, which cannot be checked"
_ELSEWHERE = "use an OpenAI-compatible address of the provider (openai/<name>, api_base)"


class _Client(AsyncHTTPHandler):
    """Client for litellm that checks every request.

    litellm uses its own handler for some providers and OpenAI's client for others. This class
    extends litellm's handler and delegates all other attributes to an OpenAI client.
    """

    openai: AsyncOpenAI | None = None

    def __init__(self, api_key: str, api_base: str | None) -> None:
        super().__init__(event_hooks={"request": [_check], "response": [_keep]})
        self.openai = AsyncOpenAI(
            api_key=api_key,
            base_url=api_base or os.environ.get("OPENAI_API_BASE"),
            organization=os.environ.get("OPENAI_ORGANIZATION"),
            http_client=self.client,
            max_retries=0,
        )

    def __getattr__(self, name: str) -> Any:
        return getattr(self.openai, name)


class _Model(LiteLLM):
    """Subclass of agno's model class that returns litellm's full response, not a part of it."""

    def _parse_provider_response(self, response: Any, **_: Any) -> Any:
        return response


class Transport:
    """Client that sends questions to one model.

    Args:
        spec: Entry of the model.
        api_key: API key, or `NO_KEY`.
        api_base: Address of the endpoint; None for the provider's default.
        timeout_s: Timeout in seconds that the caller applies to each request; litellm's timeout is
            longer.
    """

    def __init__(
        self, spec: LLMEntry, *, api_key: str, api_base: str | None, timeout_s: float
    ) -> None:
        self._spec = spec
        self._address = {"api_key": api_key, "api_base": api_base}
        provider = base = None
        with suppress(litellm.exceptions.BadRequestError):
            _, provider, _, base = litellm.get_llm_provider(spec.litellm_id, **self._address)
        self._is_checked = provider in CHECKED_PROVIDERS
        self._needs_responses = False
        with suppress(Exception):  # litellm does not know the model
            mode = litellm.get_model_info(spec.litellm_id)["mode"]
            self._needs_responses = mode == "responses" and not spec.uses_responses
        self._client = _Client(api_key, base)
        self._request_options = {
            "client": self._client,
            # The caller's timeout applies first; litellm's would not end a slow stream of bytes.
            "timeout": timeout_s + 60,
            "num_retries": 0,
            "max_retries": 0,
            "drop_params": False,
        }

    async def send(self, question: Question) -> Answer:
        """Send a question once and return its answer; every billed response is an answer.

        Raises:
            NotSentError: The requests to the provider cannot be checked, or the body that litellm
                constructed differs from the question; in both cases, no request was sent.
            NotConnectedError: The connection was refused, or the host is unknown.
            MalformedResponseError: The response is not an answer.
            UserError: litellm sent the request without the check.
            Exception: litellm raised any other error.
        """
        if not self._is_checked:
            raise NotSentError(_UNCHECKED, where=self._spec.label, hint=_ELSEWHERE)
        if self._needs_responses:
            hint = "write its litellm_id as openai/responses/<name>"
            raise NotSentError(_RESPONSES, where=self._spec.label, hint=hint)
        exchange = _Exchange(question)
        _EXCHANGE.set(exchange)
        try:
            fields = await self._request(exchange)
        except Exception as error:
            fields = self._fields_without_response(error, exchange)
        if not fields or (question.is_embedded and "text" not in fields):
            raise MalformedResponseError("the response has no choices, no usage and no vector")
        if exchange.sent is None:
            raise UserError(_UNCHECKED, where=self._spec.label, hint=_ELSEWHERE)
        body = _response_body(exchange)
        # Read the model from the body: if Gemini names none, litellm reports the requested one.
        name = body.get("modelVersion") or body.get("model")
        fields["returned_model"] = name if isinstance(name, str) and name else None
        if not self._spec.is_local:
            fields["response_id"] = body.get("id") or body.get("responseId")
        for name in [name for name in fields if name.endswith("_tokens")]:
            # `Answer` rejects negative counts, but the answer must not be lost.
            if (fields[name] or 0) < 0 or (name.startswith("cache") and not fields[name]):
                fields[name] = None
        return Answer(key=question.key, sent=exchange.sent, **fields)

    async def _request(self, exchange: _Exchange) -> dict[str, Any]:
        """Send a question and return the fields of its answer; empty if the response has no answer.

        Requests to /responses use OpenAI's client, because litellm would need the package mcp.
        """
        question = exchange.question
        if self._spec.uses_responses:
            try:
                await self._client.responses.with_raw_response.create(
                    **responses_body(question), timeout=self._request_options["timeout"]
                )
            except Exception as error:
                raise litellm.exception_type(
                    model=self._spec.litellm_id,
                    custom_llm_provider="openai",
                    original_exception=error,
                ) from error
            return _responses_fields(_response_body(exchange))
        if question.is_embedded:
            await litellm.aembedding(
                model=self._spec.litellm_id,
                input=[turn.content for turn in question.messages],
                **self._request_options | {"client": self._client.openai},
                **self._address,
            )
            return _embedding_fields(_response_body(exchange))
        turns = [AgnoMessage(role=turn.role, content=turn.content) for turn in question.messages]
        # None disables agno's defaults.
        model = _Model(
            id=self._spec.litellm_id,
            temperature=None,  # type: ignore[arg-type]
            top_p=None,  # type: ignore[arg-type]
            request_params={**question.parameters, **self._request_options},
            append_trailing_user_message=False,
            **self._address,  # type: ignore[arg-type]
        )
        return _fields(await model.ainvoke(turns, assistant_message=AgnoMessage(role="assistant")))

    def _fields_without_response(self, error: Exception, exchange: _Exchange) -> dict[str, Any]:
        """Return the answer fields of a billed or filtered response that litellm rejected.

        Raises:
            NotSentError: The request differed from the question, and so was not sent.
            NotConnectedError: The connection was refused, or the host is unknown.
            MalformedResponseError: The response was successful but has no token counts.
            Exception: There was no successful response; the exception is `error`.
        """
        if exchange.mismatch:
            raise NotSentError(
                f"the request {redact(exchange.mismatch, self._spec)}; nothing was sent",
                where=self._spec.label,
                hint="declare it in the entry in models.yaml (accepts, defaults, system_role,"
                " body), or change the request",
            ) from None
        _check_connected(error, exchange.address)
        fields = _token_counts(_response_body(exchange))
        if isinstance(error, ContentPolicyViolationError):
            fields["finish_reason"] = FILTERED
        if not fields:
            if exchange.response is None or not exchange.response.is_success:
                raise error
            # litellm reports a broken body of some providers as a bad request.
            raise MalformedResponseError(exchange.problem or str(error)) from None
        return fields

    async def close(self) -> None:
        """Close the connections; must run in the event loop that used them."""
        await self._client.close()  # type: ignore[no-untyped-call]


def _check_connected(error: BaseException | None, address: str) -> None:
    """Raise `NotConnectedError` if a refused connection or an unknown host caused an error."""
    while error:
        if isinstance(error, ConnectionRefusedError | socket.gaierror):
            refused = isinstance(error, ConnectionRefusedError)
            reason = os.strerror(errno.ECONNREFUSED) if refused else error.strerror
            raise NotConnectedError(f"cannot connect to {address} ({reason})") from None
        error = error.__cause__ or error.__context__


def _fields(response: Any) -> dict[str, Any]:
    """Convert litellm's response to fields of an `Answer`.

    Returns an empty dict if the response has neither choices nor token counts.
    """
    usage: Any = getattr(response, "usage", None)
    # litellm fills in zeros if the provider did not count tokens.
    counted = usage is not None and bool(usage.prompt_tokens or usage.completion_tokens)
    if not response.choices and not counted:
        return {}
    details = getattr(usage, "completion_tokens_details", None)
    inputs = getattr(usage, "prompt_tokens_details", None)
    fields = {
        "fingerprint": getattr(response, "system_fingerprint", None),
        "input_tokens": usage.prompt_tokens if counted else None,
        "output_tokens": usage.completion_tokens if counted else None,
        "cached_tokens": getattr(inputs, "cached_tokens", None),
        "cache_write_tokens": getattr(inputs, "cache_write_tokens", None),
        "reasoning_tokens": getattr(details, "reasoning_tokens", None),
    }
    if not response.choices:
        return fields
    message = response.choices[0].message
    called = [
        ToolCall(name=call.function.name, arguments=call.function.arguments or "")
        for call in getattr(message, "tool_calls", None) or ()
    ]
    return fields | {
        "text": message.content,
        "reasoning": getattr(message, "reasoning_content", None),
        "refusal": (getattr(message, "provider_specific_fields", None) or {}).get("refusal"),
        "finish_reason": response.choices[0].finish_reason,
        "tool_calls": called or None,
    }


def _responses_fields(body: dict[str, Any]) -> dict[str, Any]:
    """Convert a body of OpenAI's /responses to fields of an `Answer`.

    Returns an empty dict if the body has neither output nor usage.
    """
    usage: dict[str, Any] = body.get("usage") or {}
    output = body.get("output") or []
    if not output and not usage:
        return {}
    by_type: dict[str, list[str]] = {}
    for item in output:
        for part in (*(item.get("content") or ()), *(item.get("summary") or ())):
            text = part.get("text") or part.get("refusal") or ""
            by_type.setdefault(part.get("type", ""), []).append(text)
    called = [
        ToolCall(name=item.get("name"), arguments=item.get("arguments") or "")
        for item in output
        if item.get("type") == "function_call"
    ]
    ended = "tool_calls" if called else "stop"
    reason = (body.get("incomplete_details") or {}).get("reason", ended)
    inputs = usage.get("input_tokens_details") or {}
    return {
        "text": "".join(by_type["output_text"]) if "output_text" in by_type else None,
        "reasoning": "\n\n".join(by_type.get("summary_text", ())) or None,
        "refusal": "".join(by_type.get("refusal", ())) or None,
        "finish_reason": {"max_output_tokens": "length"}.get(reason, reason),
        "tool_calls": called or None,
        "input_tokens": usage.get("input_tokens"),
        "output_tokens": usage.get("output_tokens"),
        "cached_tokens": inputs.get("cached_tokens"),
        "cache_write_tokens": inputs.get("cache_write_tokens"),
        "reasoning_tokens": (usage.get("output_tokens_details") or {}).get("reasoning_tokens"),
    }


def _embedding_fields(body: dict[str, Any]) -> dict[str, Any]:
    """Convert an embeddings body to fields of an `Answer`; empty if the body has no finite vector.

    The text of the answer is the base64 encoding of the vector as little-endian float32.
    """
    try:
        vector = array("f", body["data"][0]["embedding"])
    except (LookupError, TypeError, OverflowError):
        return {}
    if not vector or not all(map(math.isfinite, vector)):
        return {}
    if sys.byteorder == "big":
        vector.byteswap()
    counts = {"input_tokens": None} | _token_counts(body) | {"output_tokens": 0}
    return {"text": b64encode(vector.tobytes()).decode(), **counts}


def _response_body(exchange: _Exchange) -> dict[str, Any]:
    """Return the JSON object in a successful response; empty if there is none."""
    if exchange.response is not None and exchange.response.is_success:
        with suppress(ValueError, httpx.StreamError):
            body = exchange.response.json()
            return body if isinstance(body, dict) else {}
    return {}


def _token_counts(body: dict[str, Any]) -> dict[str, Any]:
    """Return the token counts in a provider's body by field of `Answer`; empty if all are 0."""
    usage = body.get("usage") or body.get("usageMetadata")
    if not isinstance(usage, dict):
        return {}
    counts = {
        field: sum(count for name in names if isinstance(count := usage.get(name), int))
        for field, names in _COUNTS.items()
    }
    reported = {name: count for name, count in counts.items() if count or "cache" not in name}
    return reported if any(counts.values()) else {}


_COUNTS = {
    "input_tokens": (
        "prompt_tokens",
        "input_tokens",
        "cache_read_input_tokens",
        "cache_creation_input_tokens",
        "promptTokenCount",
    ),
    "cached_tokens": ("cache_read_input_tokens", "cachedContentTokenCount"),
    "cache_write_tokens": ("cache_creation_input_tokens",),
    "output_tokens": (
        "completion_tokens",
        "output_tokens",
        "candidatesTokenCount",
        "thoughtsTokenCount",
    ),
}
"""Providers' names of the token counts, by field of `Answer`."""
