"""HTTP server on the loopback interface that sends prepared replies and faults."""

import asyncio
import json
import socket
import threading
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import uvicorn
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

DRIP_S = 0.2


@dataclass
class Reply:
    """Reply to a request.

    Attributes:
        status: HTTP status.
        body: Body of the response.
        headers: Additional headers, which may override the content type.
        delay: Delay of the response in seconds.
        fault: `hang` sends nothing and keeps the connection open; `reset` closes the connection
            before the body, `cut` after half of it; `drip` sends one byte of the body every
            `DRIP_S` seconds, but never the last byte. With any other value, the reply is complete.
    """

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    fault: str | None = None


class Received(NamedTuple):
    """Received request; header names are lowercase."""

    method: str
    path: str
    headers: dict[str, str]
    content: bytes

    @property
    def body(self) -> Any:
        """The content parsed as JSON.

        Raises:
            ValueError: The content is not JSON.
        """
        return json.loads(self.content)


class LoopbackServer(ABC):
    """Context manager that runs a server in a separate thread.

    Args:
        port: Port on the loopback interface; 0 for any free port.
    """

    def __init__(self, port: int = 0) -> None:
        self.port = port

    @abstractmethod
    async def exchange(
        self, received: Received, reply: Callable[[Reply], Awaitable[bool]]
    ) -> object:
        """Answer a request by calling `reply`, which returns whether the full reply was sent."""

    @property
    def address(self) -> str:
        """URL of the server without a path."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def api_base(self) -> str:
        """Base URL of an OpenAI-compatible API."""
        return f"{self.address}/v1"

    def __enter__(self) -> Self:
        listening = socket.create_server(("127.0.0.1", self.port), backlog=1024)
        self.port = listening.getsockname()[1]
        config = uvicorn.Config(
            self._serve,
            interface="asgi3",
            lifespan="off",
            log_level="critical",
            timeout_keep_alive=3600,
        )
        self._server = uvicorn.Server(config)
        serving = self._server.serve(sockets=[listening])
        self._thread = threading.Thread(target=asyncio.run, args=[serving], daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = self._server.force_exit = True
        self._thread.join(10)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        received = Received(
            request.method, request.url.path, dict(request.headers), await request.body()
        )
        await self.exchange(received, lambda reply: _send(reply, request, send))


async def _send(reply: Reply, request: Request, send: Send) -> bool:
    await asyncio.sleep(reply.delay)
    if reply.fault == "hang":
        await request.receive()  # returns when the client disconnects
    if await request.is_disconnected():
        return False
    fields = {"Content-Type": "application/json", **reply.headers}
    fields["Content-Length"] = str(len(reply.body))
    headers = [(name.encode(), value.encode()) for name, value in fields.items()]
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    if reply.fault == "drip":
        for place in range(len(reply.body) - 1):
            part = reply.body[place : place + 1]
            await send({"type": "http.response.body", "body": part, "more_body": True})
            await asyncio.sleep(DRIP_S)
        await request.receive()
    shares = {"reset": 0, "drip": 0, "cut": len(reply.body) // 2}
    is_whole = reply.fault not in shares
    # If the response is incomplete, uvicorn closes the connection.
    part = reply.body[: shares.get(str(reply.fault))]
    await send({"type": "http.response.body", "body": part, "more_body": not is_whole})
    return is_whole
