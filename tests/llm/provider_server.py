"""Server on the loopback interface with the formats of OpenAI, Together, Anthropic and Gemini."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

from llm.loopback import LoopbackServer, Received, Reply

from pieline.models.llm import LLMEntry

SERVED = "served"
"""Placeholder in a body for the model name."""
CALL = {"id": "c", "type": "function", "function": {"name": "look_up", "arguments": '{"pie": 1}'}}


def chat(message: Any = None, finish: str = "stop", **fields: Any) -> dict[str, Any]:
    """Return a chat completion of OpenAI, Together or a local server."""
    choice = {"index": 0, "message": message or {"role": "assistant", "content": "hi"}}
    usage = {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}
    body = {"id": "r1", "object": "chat.completion", "created": 0, "model": SERVED}
    return {**body, "choices": [{**choice, "finish_reason": finish}], "usage": usage, **fields}


def message(*content: Any, stop: str = "end_turn", **fields: Any) -> dict[str, Any]:
    """Return a response of Anthropic's messages API."""
    body = {"id": "r1", "type": "message", "role": "assistant", "model": SERVED}
    usage = {"input_tokens": 9, "output_tokens": 3}
    return {**body, "content": list(content), "stop_reason": stop, "usage": usage, **fields}


def generated(*parts: Any, finish: str = "STOP", **fields: Any) -> dict[str, Any]:
    """Return a response of Gemini's generateContent."""
    candidate = {"content": {"role": "model", "parts": list(parts)}, "finishReason": finish}
    usage = {"promptTokenCount": 9, "candidatesTokenCount": 3, "totalTokenCount": 12}
    body = {"candidates": [candidate], "usageMetadata": usage, "modelVersion": SERVED}
    return {**body, "responseId": "r1", **fields}


def response(*output: Any, **fields: Any) -> dict[str, Any]:
    """Return a response of OpenAI's /responses."""
    body = {"id": "r1", "object": "response", "created_at": 0, "model": SERVED}
    usage = {"input_tokens": 9, "output_tokens": 3, "total_tokens": 12}
    return {**body, "status": "completed", "output": list(output), "usage": usage, **fields}


def output(text: str, kind: str = "output_text") -> dict[str, Any]:
    """Return a message in the output of OpenAI's /responses."""
    part = {"type": kind, "refusal" if kind == "refusal" else "text": text}
    return {"type": "message", "id": "m", "role": "assistant", "content": [part]}


REPLIES = {
    "/v1/responses": response(output("hi")),
    "/v1/chat/completions": chat(),
    "/v1/messages": message({"type": "text", "text": "hi"}),
    ":generateContent": generated({"text": "hi"}),
}


class ProviderServer(LoopbackServer):
    """Context manager that serves on a free port and sends the same reply to every request.

    Args:
        reply: Body of all responses; by default, an answer with the text "hi".
        model: Model name that replaces "served" in the body; by default, the requested model.
        status: HTTP status of all responses.

    Attributes:
        requests: All received requests.
    """

    def __init__(
        self, reply: dict[str, Any] | None = None, model: str | None = None, status: int = 200
    ) -> None:
        super().__init__()
        self.requests: list[Received] = []
        self._reply, self._model, self._status = reply, model, status

    async def exchange(self, request: Received, send: Callable[[Reply], Awaitable[bool]]) -> None:
        if request.method != "POST":
            await send(Reply(501))
            return
        self.requests.append(request)
        usual = next(value for end, value in REPLIES.items() if request.path.endswith(end))
        body = usual if self._reply is None else self._reply
        asked = request.body.get("model") or request.path.partition("/models/")[2].partition(":")[0]
        body = {
            name: self._model or asked if value == SERVED else value for name, value in body.items()
        }
        await send(Reply(self._status, json.dumps(body).encode()))

    def play(self, entry: LLMEntry, **changes: Any) -> LLMEntry:
        """Return the entry with this server as its provider; no model is retired here."""
        path = {"anthropic": "", "gemini": "/v1beta"}.get(entry.provider, "/v1")
        base = f"{self.address}{path}"
        return entry.model_copy(update={"api_base": base, "ends": None, **changes})
