"""A small OpenAI-compatible server on the loopback that answers, or fails as it is told to."""

import asyncio
import json
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self


@dataclass
class Reply:
    """What the server does with one request."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    hang: bool = False
    drip: bool = False
    reset: bool = False


@dataclass
class Request:
    """One request as the server saw it."""

    text: str
    attempt: int
    at: float
    body: dict[str, Any]
    headers: dict[str, str]


def answer(text: str, *, delay: float = 0.0, **extra: Any) -> Reply:
    """A well-formed answer; `extra` replaces parts of it (`finish_reason`, `usage`, `message`)."""
    message = extra.get("message", {"role": "assistant", "content": text})
    finish = extra.get("finish_reason", "stop")
    usage = extra.get("usage", {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15})
    body = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": "served-model-2026",
        "system_fingerprint": "fp_test",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": usage,
    }
    return Reply(body=json.dumps(body).encode(), delay=delay)


def echo(request: Request) -> Reply:
    """Answer with the question's text."""
    return answer(f"echo {request.text}")


class FaultServer:
    """Serves on a free loopback port in a thread of its own while the block runs."""

    def __init__(self, behave: Callable[[Request], Reply] = echo) -> None:
        self.behave = behave
        self.requests: list[Request] = []
        self.answered: Counter[str] = Counter()
        self.in_flight = self.most_in_flight = 0
        self._attempts: Counter[str] = Counter()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    @property
    def api_base(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        start = asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=1024)
        self._server = asyncio.run_coroutine_threadsafe(start, self._loop).result(10)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    def __exit__(self, *_: object) -> None:
        async def stop() -> None:
            self._server.close()
            tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

        asyncio.run_coroutine_threadsafe(stop(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self._one(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {
            name.strip().lower(): value.strip()
            for name, _, value in (line.partition(":") for line in head[1:])
        }
        body = json.loads(await reader.readexactly(int(headers.get("content-length", 0))))
        text = body["messages"][-1]["content"]
        self._attempts[text] += 1
        request = Request(text, self._attempts[text], time.monotonic(), body, headers)
        self.requests.append(request)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            reply = self.behave(request)
            if reply.hang:
                await reader.read(1)  # until the client gives up
                return False
            return await self._reply(request, reply, writer)
        finally:
            self.in_flight -= 1

    async def _reply(self, request: Request, reply: Reply, writer: asyncio.StreamWriter) -> bool:
        await asyncio.sleep(reply.delay)
        if reply.reset:
            return False
        fields = {"Content-Type": "application/json", **reply.headers}
        fields["Content-Length"] = str(len(reply.body))
        head = [
            f"HTTP/1.1 {reply.status} X",
            *(f"{name}: {value}" for name, value in fields.items()),
        ]
        writer.write(("\r\n".join(head) + "\r\n\r\n").encode("latin-1"))
        if reply.drip:
            for byte in reply.body:
                writer.write(bytes([byte]))
                await writer.drain()
                await asyncio.sleep(0.2)
        writer.write(reply.body)
        await writer.drain()
        if reply.status == 200:
            self.answered[request.text] += 1
        return True
