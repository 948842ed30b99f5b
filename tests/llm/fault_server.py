"""Small OpenAI-compatible server on the loopback interface that answers or fails as configured."""

import json
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any

from llm.loopback import LoopbackServer, Received, Reply

ASKED = "the model that is asked"
USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
"""Default usage; for a long prompt, the server counts its characters instead."""


@dataclass
class Request:
    """Received request."""

    text: str
    attempt: int
    at: float
    body: dict[str, Any]
    headers: dict[str, str]


def answer(text: str, *, delay: float = 0.0, **extra: Any) -> Reply:
    """Return a well-formed response that names the requested model.

    `extra` replaces `finish_reason`, `usage`, `message`, `model` or `id`.
    """
    message = extra.get("message", {"role": "assistant", "content": text})
    finish = extra.get("finish_reason", "stop")
    usage = extra.get("usage", USAGE)
    body = {
        "id": extra.get("id", "chatcmpl-1"),
        "object": "chat.completion",
        "created": 0,
        "model": extra.get("model", ASKED),
        "system_fingerprint": "fp_test",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": usage,
    }
    return Reply(body=json.dumps(body).encode(), delay=delay)


def echo(request: Request) -> Reply:
    """Return a response with the text of the question."""
    return answer(f"echo {request.text}")


class FaultServer(LoopbackServer):
    """Context manager that serves on a free port in a separate thread."""

    def __init__(self, behave: Callable[[Request], Reply] = echo) -> None:
        super().__init__()
        self.behave = behave
        self.requests: list[Request] = []
        self.answered: Counter[str] = Counter()
        self.in_flight = self.most_in_flight = 0
        self._attempts: Counter[str] = Counter()

    async def exchange(self, received: Received, send: Callable[[Reply], Awaitable[bool]]) -> None:
        asked = received.body
        text = asked["input"][0] if "input" in asked else asked["messages"][-1]["content"]
        self._attempts[text] += 1
        request = Request(
            text, self._attempts[text], time.monotonic(), received.body, received.headers
        )
        self.requests.append(request)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            reply = self.behave(request)
            model = received.body["model"].encode()
            body = reply.body.replace(ASKED.encode(), model)
            length = sum(len(turn["content"]) for turn in asked.get("messages", ()))
            if (tokens := length // 4) > USAGE["prompt_tokens"] * 4:
                counted = {"prompt_tokens": tokens, "completion_tokens": 5}
                body = body.replace(json.dumps(USAGE).encode(), json.dumps(counted).encode())
            reply = replace(reply, body=body)
            is_whole = await send(reply)
        finally:
            self.in_flight -= 1
        if is_whole and reply.status == 200:
            self.answered[text] += 1
