"""HTTP/1.1 in front of the simulated providers, over connections in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import unquote

from llm_provider.simulator._server.delivery import BrokenConnectionError

Application = Callable[[dict[str, Any], Any, Any], Awaitable[None]]

REASONS = {200: b"OK"}


class HTTPConnection:
    """Answers the requests of one connection, one after the other.

    Args:
        application: the ASGI application that answers.
        write: sends bytes to the client.
        close: ends the connection; True cuts it.
        client: host and port of the client.
    """

    def __init__(
        self,
        application: Application,
        write: Callable[[bytes], None],
        close: Callable[[bool], None],
        client: tuple[str, int],
    ) -> None:
        self._application = application
        self._write = write
        self._close = close
        self._client = client
        self._buffer = b""
        self._arrived = asyncio.Event()
        self._is_lost = False
        self._task = asyncio.get_running_loop().create_task(self._serve())

    def receive(self, data: bytes) -> None:
        """Take bytes of the client."""
        self._buffer += data
        self._arrived.set()

    def lose(self) -> None:
        """Take the end of the connection."""
        self._is_lost = True
        self._arrived.set()

    async def _serve(self) -> None:
        while True:
            head = await self._read_until(b"\r\n\r\n")
            if head is None:
                return
            request, *lines = head.split(b"\r\n")
            method, target, _ = request.decode("latin-1").split(" ")
            headers = []
            for line in lines:
                name, _, value = line.partition(b":")
                headers.append((name.strip().lower(), value.strip()))
            body = await self._read_body(dict(headers))
            if body is None:
                return
            path, _, query = target.partition("?")
            scope = {
                "type": "http",
                "method": method,
                "scheme": "http",
                "path": unquote(path),
                "query_string": query.encode(),
                "headers": headers,
                "http_version": "1.1",
                "client": self._client,
            }
            try:
                await self._application(scope, _Body(body, self).receive, _Answer(self._write).send)
            except BrokenConnectionError:
                self._close(True)
                return
            except asyncio.CancelledError:
                raise

    async def _read_body(self, headers: dict[bytes, bytes]) -> bytes | None:
        if b"chunked" not in headers.get(b"transfer-encoding", b""):
            return await self._read(int(headers.get(b"content-length", 0)))
        body = b""
        while True:
            line = await self._read_until(b"\r\n")
            piece = None if line is None else await self._read(int(line.split(b";")[0], 16) + 2)
            if piece is None:
                return None
            if piece == b"\r\n":
                return body
            body += piece[:-2]

    async def _read_until(self, end: bytes) -> bytes | None:
        while end not in self._buffer:
            if not await self._wait():
                return None
        part, _, self._buffer = self._buffer.partition(end)
        return part

    async def _read(self, size: int) -> bytes | None:
        while len(self._buffer) < size:
            if not await self._wait():
                return None
        part, self._buffer = self._buffer[:size], self._buffer[size:]
        return part

    async def _wait(self) -> bool:
        """Wait for more bytes. Returns False if the client is gone."""
        if not self._is_lost:
            await self._arrived.wait()
            self._arrived.clear()
        return not self._is_lost

    async def wait_for_loss(self) -> None:
        """Wait until the client is gone."""
        while await self._wait():
            pass


class _Body:
    """The body of a request, then the client's disconnect, as ASGI messages."""

    def __init__(self, body: bytes, connection: HTTPConnection) -> None:
        self._body: bytes | None = body
        self._connection = connection

    async def receive(self) -> MutableMapping[str, Any]:
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        await self._connection.wait_for_loss()
        return {"type": "http.disconnect"}


class _Answer:
    """Writes ASGI messages as an HTTP response."""

    def __init__(self, write: Callable[[bytes], None]) -> None:
        self._write = write
        self._head = b""
        self._is_chunked = False

    async def send(self, message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            status, headers = message["status"], message["headers"]
            lines = [b"HTTP/1.1 %d %s" % (status, REASONS.get(status, b"Error"))]
            lines += [name + b": " + value for name, value in headers]
            self._is_chunked = all(name != b"content-length" for name, _ in headers)
            self._head = b"\r\n".join(lines) + b"\r\n"
            return
        body, more = message.get("body", b""), message.get("more_body", False)
        head, self._head = self._head, b""
        if head:
            if self._is_chunked and not more:
                self._is_chunked = False
                head += b"content-length: %d\r\n" % len(body)
            elif self._is_chunked:
                head += b"transfer-encoding: chunked\r\n"
            head += b"\r\n"
        if self._is_chunked:
            body = (b"%x\r\n" % len(body) + body + b"\r\n" if body else b"") + (b"" if more else b"0\r\n\r\n")
        if head or body:
            self._write(head + body)
