"""An HTTP server on the loopback that answers, or fails as it is told to."""

import asyncio
import json
import threading
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

DRIP_S = 0.2


@dataclass
class Reply:
    """What the server does with one request.

    Attributes:
        status, body, headers: of the response.
        delay: seconds before it.
        hang: there is none, and the connection stays open.
        reset: there is none, and the connection ends.
        cut: the connection ends after half of the body.
        drip: a byte each `DRIP_S` seconds, and never the last one.
    """

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    hang: bool = False
    reset: bool = False
    cut: bool = False
    drip: bool = False


class Received(NamedTuple):
    """One request as it arrived; header names in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    content: bytes

    @property
    def body(self) -> Any:
        """The JSON of the content.

        Raises:
            ValueError: it is none.
        """
        return json.loads(self.content)


class LoopbackServer(ABC):
    """Serves in a thread of its own while the block runs.

    Args:
        port: of the loopback; 0 for a free one.
    """

    def __init__(self, port: int = 0) -> None:
        self.port = port
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    @abstractmethod
    async def exchange(
        self, request: Received, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Deal with one request, by `send`; whether the connection is fit for another one."""

    @property
    def address(self) -> str:
        """Where it serves, without a path."""
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._thread.start()
        start = asyncio.start_server(self._serve, "127.0.0.1", self.port, backlog=1024)
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
            while await self.exchange(await _request(reader), reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()


async def send(reply: Reply, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    """Send a reply; whether all of it went out to a client that was still there."""
    await asyncio.sleep(reply.delay)
    if reply.hang:
        await reader.read(1)  # until the client gives up
    if reply.hang or reply.reset or reader.at_eof():
        return False
    fields = {"Content-Type": "application/json", **reply.headers}
    fields["Content-Length"] = str(len(reply.body))
    head = [f"HTTP/1.1 {reply.status} X", *(f"{name}: {value}" for name, value in fields.items())]
    writer.write(("\r\n".join(head) + "\r\n\r\n").encode("latin-1"))
    if reply.drip:
        for byte in reply.body[:-1]:
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(DRIP_S)
        await reader.read(1)
        return False
    writer.write(reply.body[: len(reply.body) // 2] if reply.cut else reply.body)
    await writer.drain()
    return not reply.cut


async def _request(reader: asyncio.StreamReader) -> Received:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    method, path, _ = head[0].split(" ", 2)
    fields = (line.partition(":") for line in head[1:] if line)
    headers = {name.strip().lower(): value.strip() for name, _, value in fields}
    return Received(
        method, path, headers, await reader.readexactly(int(headers.get("content-length", 0)))
    )
