"""Wire formats of OpenAI, Together, Anthropic and Gemini from the provider's side.

The classes parse the requests that `pieline.llm.wire` sends, and build replies and errors in the
providers' formats.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

Body = dict[str, Any]

RATE_LIMIT = 429
OVERLOADED = 529
"""Anthropic's status for an overloaded server; the other providers use 503."""


class Asked(NamedTuple):
    """Question parsed from a request.

    Attributes:
        model: Name of the model in the request: litellm's id without the provider's prefix.
        turns: Role and text of each message in order; a system message is first.
        seed: Sampling seed; None if the request has none.
    """

    model: str
    turns: tuple[tuple[str, str], ...]
    seed: int | None


class CountedAnswer(NamedTuple):
    """Stand-in's answer, with token counts.

    Attributes:
        model: Name of the model in the request.
        number: Hexadecimal digits for the id of the reply.
        text: Text of the answer.
        is_cut: Whether the text was truncated at the token limit.
        input_tokens: Tokens of the question.
        output_tokens: Tokens of the answer, including reasoning tokens.
        reasoning_tokens: Output tokens of reasoning that is not in the text.
    """

    model: str
    number: str
    text: str
    is_cut: bool
    input_tokens: int
    output_tokens: int
    reasoning_tokens: int = 0


class Provider:
    """Interface of a provider; this class is that of OpenAI's chat completions and local servers.

    Attributes:
        name: Name in models.yaml, which is also litellm's prefix.
        base: Path of the address in `llm.api_bases`.
        end: Suffix of the paths of requests.
        errors: Error types by HTTP status.
    """

    name, base, end = "openai", "/openai/v1", "/chat/completions"
    errors: ClassVar[Mapping[int, str]] = {
        400: "invalid_request_error",
        404: "invalid_request_error",
        RATE_LIMIT: "requests",
    }

    def serves(self, path: str) -> bool:
        """Return whether a path belongs to this interface."""
        return path.startswith(f"{self.base}/") and path.endswith(self.end)

    def asked(self, path: str, body: Body) -> Asked:
        """Parse the question of a request.

        Raises:
            KeyError, TypeError, AttributeError: The request is invalid.
        """
        turns = tuple((turn["role"], turn["content"]) for turn in body["messages"])
        return Asked(body["model"], turns, body.get("seed"))

    def limit(self, body: Body) -> int | None:
        """Return the maximum number of answer tokens; None if the request sets no limit."""
        limit: int | None = body.get("max_completion_tokens", body.get("max_tokens"))
        return limit

    def reply(self, answer: CountedAnswer) -> Body:
        """Return the body of the reply that contains an answer."""
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": answer.text},
            "finish_reason": "length" if answer.is_cut else "stop",
        }
        usage = {
            "prompt_tokens": answer.input_tokens,
            "completion_tokens": answer.output_tokens,
            "total_tokens": answer.input_tokens + answer.output_tokens,
            "completion_tokens_details": {"reasoning_tokens": answer.reasoning_tokens},
        }
        return {
            "id": f"chatcmpl-{answer.number[:29]}",
            "object": "chat.completion",
            "created": 0,
            "model": answer.model,
            "choices": [choice],
            "usage": usage,
        }

    def error(self, status: int, message: str, wait_s: float) -> Body:
        """Return the body of an error; `wait_s` is the delay before a retry, in seconds."""
        code = {404: "model_not_found", RATE_LIMIT: "rate_limit_exceeded"}.get(status)
        kind = self.errors.get(status, "server_error")
        return {"error": {"message": message, "type": kind, "param": None, "code": code}}

    def headers(self, wait_s: float) -> dict[str, str]:
        """Return the headers that state the delay before a retry, in seconds."""
        return {"Retry-After": f"{wait_s:.3f}"}


class Together(Provider):
    """Interface of Together: OpenAI's chat completions at another address."""

    name, base = "together_ai", "/together_ai/v1"


class Anthropic(Provider):
    """Interface of Anthropic: the Messages API."""

    name, base, end = "anthropic", "/anthropic", "/v1/messages"
    errors: ClassVar = {
        400: "invalid_request_error",
        404: "not_found_error",
        RATE_LIMIT: "rate_limit_error",
        OVERLOADED: "overloaded_error",
    }

    def asked(self, path: str, body: Body) -> Asked:
        """See `Provider`."""
        turns = [("system", block["text"]) for block in body.get("system", ())]
        turns += [(turn["role"], _joined(turn["content"])) for turn in body["messages"]]
        return Asked(body["model"], tuple(turns), None)

    def limit(self, body: Body) -> int | None:
        """See `Provider`."""
        return int(body["max_tokens"])

    def reply(self, answer: CountedAnswer) -> Body:
        """See `Provider`."""
        usage = {
            "input_tokens": answer.input_tokens,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
            "output_tokens": answer.output_tokens,
            "service_tier": "standard",
        }
        return {
            "id": f"msg_01{answer.number[:22]}",
            "type": "message",
            "role": "assistant",
            "model": answer.model,
            "content": [{"type": "text", "text": answer.text}],
            "stop_reason": "max_tokens" if answer.is_cut else "end_turn",
            "stop_sequence": None,
            "usage": usage,
        }

    def error(self, status: int, message: str, wait_s: float) -> Body:
        """See `Provider`."""
        return {
            "type": "error",
            "error": {"type": self.errors.get(status, "api_error"), "message": message},
        }


class Gemini(Provider):
    """Interface of Gemini: the method generateContent."""

    name, base, end = "gemini", "/gemini/v1beta", ":generateContent"
    errors: ClassVar = {
        400: "INVALID_ARGUMENT",
        404: "NOT_FOUND",
        RATE_LIMIT: "RESOURCE_EXHAUSTED",
        500: "INTERNAL",
    }

    def asked(self, path: str, body: Body) -> Asked:
        """See `Provider`."""
        model = path.removesuffix(self.end).rpartition("/models/")[2]
        system = body.get("system_instruction", {"parts": []})["parts"]
        turns = [("system", part["text"]) for part in system]
        roles = {"model": "assistant"}
        turns += [
            (roles.get(turn["role"], turn["role"]), _joined(turn["parts"]))
            for turn in body["contents"]
        ]
        return Asked(model, tuple(turns), body.get("generationConfig", {}).get("seed"))

    def limit(self, body: Body) -> int | None:
        """See `Provider`."""
        limit: int | None = body.get("generationConfig", {}).get("max_output_tokens")
        return limit

    def reply(self, answer: CountedAnswer) -> Body:
        """See `Provider`."""
        thoughts = answer.reasoning_tokens
        usage = {
            "promptTokenCount": answer.input_tokens,
            "candidatesTokenCount": answer.output_tokens - thoughts,
            "totalTokenCount": answer.input_tokens + answer.output_tokens,
            "promptTokensDetails": [{"modality": "TEXT", "tokenCount": answer.input_tokens}],
            **({"thoughtsTokenCount": thoughts} if thoughts else {}),
        }
        candidate = {
            "content": {"parts": [{"text": answer.text}], "role": "model"},
            "finishReason": "MAX_TOKENS" if answer.is_cut else "STOP",
            "index": 0,
        }
        return {
            "candidates": [candidate],
            "usageMetadata": usage,
            "modelVersion": answer.model,
            "responseId": answer.number[:22],
        }

    def error(self, status: int, message: str, wait_s: float) -> Body:
        """See `Provider`; the body contains the delay before a retry."""
        error: Body = {"code": status, "message": message}
        error["status"] = self.errors.get(status, "UNAVAILABLE")
        if status == RATE_LIMIT:
            # OpenAI uses the same words for an account without credit.
            error["message"] = (
                "You exceeded your current quota, please check your plan and billing details."
                f" {message}\nPlease retry in {wait_s:.3f}s."
            )
            kind = "type.googleapis.com/google.rpc.RetryInfo"
            error["details"] = [{"@type": kind, "retryDelay": f"{wait_s:.3f}s"}]
        return {"error": error}

    def headers(self, wait_s: float) -> dict[str, str]:
        """Return no headers, because the body of the error states the delay."""
        return {}


PROVIDERS: tuple[Provider, ...] = (Provider(), Anthropic(), Gemini(), Together())


def api_bases(address: str) -> dict[str, str]:
    """Return `llm.api_bases` for one server that replaces all providers."""
    return {provider.name: f"{address}{provider.base}" for provider in PROVIDERS}


def _joined(parts: list[Body]) -> str:
    return "".join(part["text"] for part in parts)
