"""Send a question to its provider and return the answer, with agno's LiteLLM model class.

agno provides a uniform interface to all providers on top of litellm. This module ensures that only
the question is sent (see `wire`), and only to the address of the model, and reads the answer from
the body that the provider sent (see `bodies`). Importing this module loads agno and litellm,
which takes seconds, so only `pieline.llm.client` imports it, and only when an answer is missing.
"""

import errno
import json
import logging
import os
import socket
import urllib.request
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import urlsplit

from pieline.core.errors import UserError
from pieline.llm.answers import FILTERED, Answer, SentRequest
from pieline.llm.bodies import answer_fields, identifiers, is_filtered_error
from pieline.llm.keys import origin, redact
from pieline.llm.questions import Question
from pieline.llm.retries import MalformedResponseError, NotConnectedError, NotSentError
from pieline.llm.wire import difference, merge_fields, responses_body, shorten_request
from pieline.models.llm import LLMEntry, is_loopback

# Set these variables before the imports: no price list from the network, no telemetry, no `.env`
# file, and no debug output, which would contain API keys.
os.environ.update(
    LITELLM_LOCAL_MODEL_COST_MAP="True",
    LITELLM_MODE="PRODUCTION",
    LITELLM_LOG="ERROR",
    AGNO_TELEMETRY="false",
    AGNO_DEBUG="false",
)

import aiohttp
import httpx
import litellm
from agno.models.litellm import LiteLLM
from agno.models.message import Message as AgnoMessage
from litellm.constants import openai_compatible_providers
from litellm.exceptions import ContentPolicyViolationError
from litellm.litellm_core_utils.prompt_templates.common_utils import parse_content_for_reasoning
from litellm.llms.custom_httpx.http_handler import AsyncHTTPHandler
from openai import AsyncOpenAI
from pydantic_core import from_json

litellm.suppress_debug_info = True
# About malformed fields of responses, which are ignored.
warnings.filterwarnings("ignore", message="Pydantic serializer warnings")
for _name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy", "agno", "agno-team", "agno-workflow"):
    logging.getLogger(_name).disabled = True
for _name in ("openai", "httpx", "httpcore", "aiohttp", "anthropic"):
    logging.getLogger(_name).setLevel(logging.WARNING)


@dataclass
class _Exchange:
    """State of one request and its response.

    Attributes:
        question: Question to send.
        origin: Scheme, host and port to which the question may be sent; empty to allow any server.
        sent: Request that was sent; None if no request was sent.
        mismatch: Reason why the request was not sent; None if there is none.
        response: Response of the provider; None if there was none.
        problem: Reason why the response is incomplete; None if it is complete.
    """

    question: Question
    origin: str = ""
    sent: SentRequest | None = None
    mismatch: str | None = None
    response: httpx.Response | None = None
    problem: str | None = None


_LARGEST_RESPONSE = 32 * 2**20
"""Maximum bytes of a decompressed response, about a thousand times the longest answer."""
_LONGEST_RAW = 100_000
"""Maximum characters of a body that is recorded as received."""
_EXCHANGE: ContextVar[_Exchange] = ContextVar("exchange")
"""Exchange of the current task, because litellm's client has no parameter for it."""


async def _check_request(request: httpx.Request) -> None:
    """Add the raw fields to a request, and check that the body matches the question.

    Raw fields are added here because litellm would map or drop some of them.

    Raises:
        ValueError: The body does not match the question, or the URL has query parameters or is not
            at the address of the model.
        ConnectError: The exchange has already sent a request, because litellm resends a request
            after a failed connection.
    """
    exchange = _EXCHANGE.get()
    if exchange.sent is not None:
        raise httpx.ConnectError("the connection failed", request=request)
    path, body = request.url.path, json.loads(await request.aread())
    exchange.mismatch = _find_address_mismatch(request.url, exchange.origin)
    if not exchange.mismatch:
        try:
            body = merge_fields(body, exchange.question.body)
            exchange.mismatch = difference(exchange.question, path, body)
        except ValueError as error:
            exchange.mismatch = str(error)
    if exchange.mismatch:
        raise ValueError(exchange.mismatch)
    if exchange.question.body:
        request._content = json.dumps(body, ensure_ascii=False).encode()
        request.stream = httpx.ByteStream(request._content)
        request.headers["Content-Length"] = str(len(request._content))
    exchange.sent = shorten_request(exchange.question, path, body)


def _find_address_mismatch(url: httpx.URL, expected_origin: str) -> str | None:
    """Return why a request must not be sent to a URL; None if it may be sent.

    Args:
        url: URL of the request.
        expected_origin: Scheme, host and port of the model's server; empty to allow any server.
    """
    actual_origin = origin(str(url))
    if expected_origin and actual_origin != expected_origin:
        return f"would go to {actual_origin}, not to {expected_origin}"
    if url.query:
        return "has query parameters in its address"
    return None


async def _read_response(response: httpx.Response) -> None:
    """Read the body of a response; if the connection breaks, keep what was received.

    Raises:
        ReadError: The body has more than `_LARGEST_RESPONSE` bytes.
    """
    exchange = _EXCHANGE.get()
    exchange.response = response
    exchange.problem = "the connection broke during the response"
    content = bytearray()
    try:
        async for received in response.aiter_bytes():
            content += received
            if len(content) > _LARGEST_RESPONSE:
                await response.aclose()
                megabytes = _LARGEST_RESPONSE // 2**20
                exchange.problem = f"the response exceeds {megabytes} MB, decompressed"
                raise httpx.ReadError(exchange.problem, request=response.request)
        exchange.problem = None
    finally:
        response._content = bytes(content)


CHECKED_PROVIDERS = frozenset(map(str, openai_compatible_providers)) | {
    "anthropic", "bedrock_mantle", "compactifai", "custom_openai", "databricks", "gemini", "heroku",
    "lemonade", "minimax", "mistral", "nadir", "openai", "openrouter", "ovhcloud",
}  # fmt: skip
"""Providers for which litellm sends the requests with the client that the caller passes."""

_UNCHECKED = "litellm does not know the provider, or its requests cannot be checked"
_RESPONSES = "litellm asks this model through OpenAI's /responses, which cannot be checked"
_CHANGED = (
    "declare it in the entry in models.yaml (accepts, defaults, system_role, body), or change the"
    " request"
)
_REDIRECTED = (
    "unset the environment variable that changes it; an address is set in the entry or in"
    " llm.api_bases"
)
_ELSEWHERE = "use an OpenAI-compatible address of the provider (openai/<name>, api_base)"


@contextmanager
def _without_variables(prefix: str) -> Iterator[None]:
    """Remove the environment variables with a prefix during the block."""
    removed = {name: os.environ.pop(name) for name in [*os.environ] if name.startswith(prefix)}
    try:
        yield
    finally:
        os.environ.update(removed)


class _Client(AsyncHTTPHandler):
    """Client for litellm that checks every request.

    litellm uses its own handler for some providers and OpenAI's client for others. This class
    extends litellm's handler and delegates all other attributes to an OpenAI client.
    """

    openai: AsyncOpenAI | None = None

    def __init__(self, api_key: str, api_base: str) -> None:
        super().__init__(event_hooks={"request": [_check_request], "response": [_read_response]})
        with _without_variables("OPENAI_"):  # organization, project, headers
            # OpenAI's client accepts a client of httpx, although its types name only httpx2.
            client = cast(Any, self.client)
            self.openai = AsyncOpenAI(
                api_key=api_key, base_url=api_base, http_client=client, max_retries=0
            )

    def __getattr__(self, name: str) -> Any:
        return getattr(self.openai, name)

    async def post(self, *arguments: Any, **options: Any) -> Any:
        """Send a request with OpenAI's client or litellm's handler, whichever litellm expects."""
        # Only calls of OpenAI's client have this option.
        is_for_openai = "cast_to" in options
        if self.openai and is_for_openai:
            return await self.openai.post(*arguments, **options)
        return await super().post(*arguments, **options)


class _Model(LiteLLM):
    """Subclass of agno's model class that returns litellm's full response, not a part of it."""

    def _parse_provider_response(self, response: Any, **_: Any) -> Any:
        return response


class Transport:
    """Client that sends questions to one model.

    Args:
        spec: Entry of the model.
        api_key: API key, or `NO_KEY`.
        api_base: Address of the endpoint.
        timeout_s: Timeout in seconds that the caller applies to each request.
    """

    def __init__(self, spec: LLMEntry, *, api_key: str, api_base: str, timeout_s: float) -> None:
        self._spec = spec
        self._endpoint = {"api_key": api_key, "api_base": api_base}
        self._origin = origin(api_base)
        if is_loopback(api_base):
            _bypass_proxies(urlsplit(api_base).hostname or "")
        provider = litellm_base = None
        # litellm does not know the provider: its requests are not checked, so none is sent.
        with suppress(litellm.exceptions.BadRequestError):
            _, provider, _, litellm_base = litellm.get_llm_provider(
                spec.litellm_id, **self._endpoint
            )
        self._is_checked = provider in CHECKED_PROVIDERS
        self._needs_responses = _would_use_responses(spec)
        self._client = _Client(api_key, litellm_base or api_base)
        self._request_options = {
            "client": self._client,
            # The caller's timeout must apply first, because litellm's timeout does not end a
            # response whose bytes arrive slowly.
            "timeout": timeout_s + 60,
            "num_retries": 0,
            "max_retries": 0,
            "drop_params": False,
        }

    async def send(self, question: Question) -> Answer:
        """Send a question once and return the response, even one that reports a failure.

        Raises:
            NotSentError: The requests to the provider cannot be checked, or the body that litellm
                constructed differs from the question; in both cases, no request was sent.
            NotConnectedError: The connection was refused, or the host is unknown.
            MalformedResponseError: The response has neither a text nor token counts.
            UserError: litellm sent the request without the check.
            Exception: litellm raised any other error.
        """
        if not self._is_checked:
            raise NotSentError(_UNCHECKED, where=self._spec.label, hint=_ELSEWHERE)
        if self._needs_responses:
            hint = "write its litellm_id as openai/responses/<name>"
            raise NotSentError(_RESPONSES, where=self._spec.label, hint=hint)
        exchange = _Exchange(question, self._origin)
        _EXCHANGE.set(exchange)
        failure = None
        try:
            await self._send_request(question)
        except Exception as error:
            failure = error
        self._check_exchange(exchange)
        response = exchange.response
        if failure and (response is None or not response.is_success):
            if not self._was_filtered(exchange, failure):
                raise self._request_error(exchange, failure)
            return self._answer(exchange, finish_reason=FILTERED)
        # litellm may raise an error although the response has an answer.
        answer = self._read_answer(exchange)
        if answer.has_output or answer.input_tokens or not answer.failure:
            return answer
        raise MalformedResponseError(exchange.problem or failure or answer.failure) from None

    def _check_exchange(self, exchange: _Exchange) -> None:
        """Raise an error if the request was not checked, or was not sent because of the check.

        Raises:
            NotSentError: The request differed from the question.
            UserError: litellm sent the request without the check.
        """
        if exchange.sent is None and exchange.response is not None:
            raise UserError(_UNCHECKED, where=self._spec.label, hint=_ELSEWHERE)
        if exchange.mismatch:
            raise NotSentError(
                f"the request {redact(exchange.mismatch, self._spec)}; nothing was sent",
                where=self._spec.label,
                hint=_REDIRECTED if exchange.mismatch.startswith("would go") else _CHANGED,
            )

    async def _send_request(self, question: Question) -> None:
        """Send a question; `_read_response` stores the response in the current `_Exchange`."""
        if self._spec.uses_responses:
            await self._send_to_responses(question)
        elif question.is_embedded:
            await litellm.aembedding(
                model=self._spec.litellm_id,
                input=[turn.content for turn in question.messages],
                **{**self._request_options, "client": self._client.openai},
                **self._endpoint,
            )
        else:
            await self._send_to_chat(question)

    async def _send_to_responses(self, question: Question) -> None:
        """Send a question to OpenAI's /responses, with OpenAI's client.

        litellm would need the package mcp.

        Raises:
            Exception: The error that litellm raises for the same failure.
        """
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

    async def _send_to_chat(self, question: Question) -> None:
        """Send a question as a chat, with agno."""
        turns = [AgnoMessage(role=turn.role, content=turn.content) for turn in question.messages]
        # None disables agno's defaults.
        model = _Model(
            id=self._spec.litellm_id,
            temperature=None,  # type: ignore[arg-type]
            top_p=None,  # type: ignore[arg-type]
            request_params={**question.parameters, **self._request_options},
            append_trailing_user_message=False,
            **self._endpoint,  # type: ignore[arg-type]
        )
        await model.ainvoke(turns, assistant_message=AgnoMessage(role="assistant"))

    def _read_answer(self, exchange: _Exchange) -> Answer:
        """Return the answer in the response of an exchange."""
        body_text = "" if exchange.response is None else _decode_body(exchange.response)
        body, body_problem = _parse_body(body_text)
        path = exchange.sent.path if exchange.sent else ""
        fields = {**answer_fields(path, body), **identifiers(body)}
        problem = exchange.problem or body_problem
        if problem and exchange.question.is_embedded:
            fields["text"] = None  # a part of a vector is of no use
        errors = [error for error in (problem, fields.get("error")) if error]
        fields["error"] = ": ".join(errors) or None
        if path.endswith("/chat/completions") and fields["text"] and not fields["reasoning"]:
            fields["reasoning"], fields["text"] = parse_content_for_reasoning(fields["text"])
        answer = self._answer(exchange, **fields)
        if answer.failure or answer.unread:
            return answer.model_copy(update={"raw": body_text[:_LONGEST_RAW]})
        return answer

    def _answer(self, exchange: _Exchange, **fields: Any) -> Answer:
        """Return an `Answer` with `fields`, and the key, request and server address of an exchange.

        The answers of local models have neither an address nor a response id.
        """
        if self._spec.is_local:
            fields["response_id"] = None
        else:
            fields["address"] = self._origin
        return Answer(key=exchange.question.key, sent=exchange.sent, **fields)

    def _was_filtered(self, exchange: _Exchange, failure: Exception) -> bool:
        """Return whether a filter of the provider rejected a request."""
        response = exchange.response
        if response is None or response.has_redirect_location:
            return False
        return isinstance(failure, ContentPolicyViolationError) or _is_filter_response(response)

    def _request_error(self, exchange: _Exchange, failure: Exception) -> Exception:
        """Return the error to raise for a request that was not answered and not filtered.

        The error is a `NotConnectedError` if the connection was refused or redirected or the host
        is unknown, else `failure`.
        """
        response = exchange.response
        if response is None:
            connection_error = _connection_error(failure, self._origin)
            if connection_error:
                return connection_error
        elif response.has_redirect_location:
            new_url = response.url.join(response.headers["Location"])
            new_origin = redact(origin(str(new_url)), self._spec)
            return NotConnectedError(
                f"{self._origin} redirects to {new_origin} ({response.status_code})",
                "set the final address in models.yaml or llm.api_bases",
            )
        proxy_variable = _proxy_variable(self._origin)
        if proxy_variable:
            failure.add_note(f"through the proxy in {proxy_variable}")
        return failure

    async def close(self) -> None:
        """Close the connections; must run in the event loop that used them."""
        await self._client.close()  # type: ignore[no-untyped-call]


def _would_use_responses(spec: LLMEntry) -> bool:
    """Return whether litellm would use OpenAI's /responses although the entry does not state it."""
    if spec.uses_responses:
        return False
    with suppress(Exception):  # litellm does not know the model
        return bool(litellm.get_model_info(spec.litellm_id)["mode"] == "responses")
    return False


def _connection_error(failure: BaseException, address: str) -> NotConnectedError | None:
    """Return an error if the host or a proxy refused a connection or is unknown, else None."""
    reason = _connection_problem(failure)
    if not reason:
        return None
    proxy_variable = _proxy_variable(address)
    if not proxy_variable:
        return NotConnectedError(f"cannot connect to {address} ({reason})")
    return NotConnectedError(
        f"cannot connect to {address} through the proxy in {proxy_variable} ({reason})",
        f"correct or unset {proxy_variable}, or add the host to no_proxy",
    )


def _connection_problem(failure: BaseException) -> str | None:
    """Return why no connection was possible, from an error or its causes; None for other errors."""
    error: BaseException | None = failure
    while error:
        reason = None
        if isinstance(error, aiohttp.ClientHttpProxyError):
            reason = f"{error.status} {error.message}".strip()
        elif isinstance(error, ConnectionRefusedError):
            reason = os.strerror(errno.ECONNREFUSED)
        elif isinstance(error, socket.gaierror):
            reason = error.strerror
        if reason:
            return reason
        error = error.__cause__ or error.__context__
    return None


def _bypass_proxies(host: str) -> None:
    """Exclude a host from the proxy settings in the environment."""
    for name in ("no_proxy", "NO_PROXY"):
        excluded_hosts = os.environ.get(name, "")
        if host not in excluded_hosts.split(","):
            os.environ[name] = f"{excluded_hosts},{host}".strip(",")


def _proxy_variable(address: str) -> str | None:
    """Return the environment variable with the proxy for an address; None if there is none."""
    parts = urlsplit(address)
    if urllib.request.proxy_bypass(parts.hostname or ""):
        return None
    for name in (f"{parts.scheme}_proxy", "all_proxy"):
        for spelling in (name, name.upper()):
            if os.environ.get(spelling):
                return spelling
    return None


def _is_filter_response(response: httpx.Response) -> bool:
    """Return whether a response with an error states that a filter rejected the request."""
    if not 400 <= response.status_code < 500:
        return False
    with suppress(ValueError, RecursionError):
        # A 403 with such a message may concern the account and not the question.
        by_message = response.status_code in (400, 422)
        return is_filtered_error(json.loads(_decode_body(response)), by_message=by_message)
    return False


def _decode_body(response: httpx.Response) -> str:
    """Return the body of a response as a text, with invalid bytes replaced."""
    return response.content.decode(json.detect_encoding(response.content), "replace")


def _parse_body(text: str) -> tuple[dict[str, Any], str | None]:
    """Return the JSON object in a response body, and why the object is incomplete.

    The object is empty if the body contains none. The second value is None for a complete or a
    missing object.
    """
    body = problem = None
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        with suppress(ValueError):
            body = from_json(text.encode("utf-8", "replace"), allow_partial="trailing-strings")
            problem = "the response is incomplete"
    if not isinstance(body, dict):
        return {}, None
    return body, problem
