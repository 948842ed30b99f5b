"""A server on the loopback that speaks the formats of OpenAI, Together, Anthropic and Gemini."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, Self

from pieline.models.llm import LLMEntry

CALL = {"id": "c", "type": "function", "function": {"name": "look_up", "arguments": '{"pie": 1}'}}


def chat(message: Any = None, finish: str = "stop", **fields: Any) -> dict[str, Any]:
    """A chat completion of OpenAI, Together or a local server."""
    choice = {"index": 0, "message": message or {"role": "assistant", "content": "hi"}}
    usage = {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}
    body = {"id": "r1", "object": "chat.completion", "created": 0, "model": "served"}
    return {**body, "choices": [{**choice, "finish_reason": finish}], "usage": usage, **fields}


def message(*content: Any, stop: str = "end_turn", **fields: Any) -> dict[str, Any]:
    """A message of Anthropic."""
    body = {"id": "r1", "type": "message", "role": "assistant", "model": "served"}
    usage = {"input_tokens": 9, "output_tokens": 3}
    return {**body, "content": list(content), "stop_reason": stop, "usage": usage, **fields}


def generated(*parts: Any, finish: str = "STOP", **fields: Any) -> dict[str, Any]:
    """What Gemini generates."""
    candidate = {"content": {"role": "model", "parts": list(parts)}, "finishReason": finish}
    usage = {"promptTokenCount": 9, "candidatesTokenCount": 3, "totalTokenCount": 12}
    body = {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "served"}
    return {**body, "responseId": "r1", **fields}


REPLIES = {
    "/v1/chat/completions": chat(),
    "/v1/messages": message({"type": "text", "text": "hi"}),
    ":generateContent": generated({"text": "hi"}),
}


class Received(NamedTuple):
    """One request as the provider saw it."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]


class ProviderServer:
    """Serves on a free port while the block runs; answers "hi", or `reply` if it is given.

    Attributes:
        requests: all that arrived.
    """

    def __init__(self, reply: dict[str, Any] | None = None) -> None:
        self.requests: list[Received] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self.requests, reply))

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=[0.01], daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def address(self) -> str:
        """Host and port."""
        return f"127.0.0.1:{self._server.server_port}"

    def play(self, entry: LLMEntry, **changes: Any) -> LLMEntry:
        """The entry, with this server in its provider's place; it still serves what is retired."""
        path = {"anthropic": "", "gemini": "/v1beta"}.get(entry.provider, "/v1")
        base = f"http://{self.address}{path}"
        return entry.model_copy(update={"api_base": base, "retired": None, **changes})


def _handler(
    requests: list[Received], reply: dict[str, Any] | None
) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            headers = {name.lower(): value for name, value in self.headers.items()}
            requests.append(Received(self.path, headers, body))
            usual = next(value for end, value in REPLIES.items() if self.path.endswith(end))
            data = json.dumps(usual if reply is None else reply).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass

    return Handler
