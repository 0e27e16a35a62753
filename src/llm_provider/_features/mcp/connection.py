"""A session with an MCP server, from its start to its end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from typing import Any

from ..._core.errors import RequestError
from .messages import mend_messages
from .process import MOST_BYTES, ServerProcess
from .results import shorten
from .server import MCPServer

_CLOSING_SECONDS = 2.8
"""A client waits 3 seconds for the end of its connections."""

_IDLE_SECONDS = 300.0
"""Seconds for which a server with a URL may send nothing."""

_LEAST_ERROR = 400

_CONNECTION_CLOSED = -32000
"""The code with which the `mcp` package tells that a connection is lost. Local servers use it otherwise."""

# Else Python shows its warnings, with tracebacks and what servers have sent, where no logging is set up.
logging.getLogger("mcp").addHandler(logging.NullHandler())


class Connection:
    """One session, in a task that closes what it has opened: the `mcp` package asks for that."""

    def __init__(self, server: MCPServer) -> None:
        self.client: Any = None
        """The `mcp.Client` once the session is there."""
        self._server = server
        self._started, self._ending = asyncio.Event(), asyncio.Event()
        self._process = ServerProcess(server, self._ending.set) if server.command else None
        self._error: BaseException | None = None
        self._status = 0
        """The HTTP status of the last message to a URL, which the `mcp` package does not tell."""
        self._task = asyncio.create_task(self._hold())

    @property
    def has_ended(self) -> bool:
        return self._ending.is_set()

    async def close(self) -> None:
        """End the session, and the process of a local server."""
        self._ending.set()
        if not self._started.is_set():
            self._task.cancel()
        await asyncio.wait([self._task], timeout=_CLOSING_SECONDS)
        self._task.cancel()

    async def wait_for_start(self) -> None:
        """Wait until the session is there; `RequestError` if the server does not start."""
        try:
            await self._started.wait()
        except asyncio.CancelledError:
            await asyncio.shield(self.close())
            raise
        if self.client is None:
            error = self._error
            while isinstance(error, BaseExceptionGroup):
                error = error.exceptions[0]
            raise self.explain(f"does not start: {self.describe(error)}")

    def explain(self, problem: str) -> RequestError:
        """The error for a server that cannot be used, with what it wrote beside messages."""
        written = "" if self._process is None else self._process.written.decode(errors="replace").strip()
        text = shorten(f"{problem}; it wrote: {written}" if written else problem)
        return RequestError(f"mcp: the server {self._server.label!r} {self._server.hide_secrets(text)}")

    def describe(self, error: BaseException | None) -> str:
        """An error of a request to the server, in its words."""
        status = f" (HTTP {self._status})" if self._status >= _LEAST_ERROR else ""
        return shorten(str(getattr(error, "message", error)) or type(error).__name__) + status

    def is_lost_by(self, error: Exception) -> bool:
        """Whether an error means that the session is lost, and not that the tool failed."""
        lost = self._process is None and getattr(error, "code", None) == _CONNECTION_CLOSED
        if lost or is_unknown_session(error):
            self._ending.set()
        return self.has_ended

    async def _hold(self) -> None:
        try:
            # A server from before 2026 may end where it is asked for its versions.
            if not await self._serve("auto") and self._process is not None and self.has_ended:
                self._ending.clear()
                await self._serve("legacy")
        except Exception as error:  # of a transport that is open, or that closes
            self._error = error
        finally:
            self._ending.set()
            self._started.set()

    async def _serve(self, mode: str) -> bool:
        """Open the session and keep it until it ends. Returns whether it was there."""
        from mcp import Client

        transport = self._connect() if self._process is None else self._process.connect()
        try:
            client = await (opened := Client(mend_messages(transport), mode=mode, cache=None)).__aenter__()
        except Exception as error:
            self._error = error
            return False
        try:
            self.client = client
            self._started.set()
            await self._ending.wait()
        finally:
            await opened.__aexit__(None, None, None)
        return True

    @contextlib.asynccontextmanager
    async def _connect(self) -> AsyncIterator[Any]:
        """The streams of a server with a URL. The `mcp` package follows redirects within its origin alone."""
        import httpx2
        from mcp.client.streamable_http import streamable_http_client

        async def bound(response: Any) -> None:
            if response.request.method == "POST":
                # The stream for the server's own messages, which it may refuse, is a GET at any time.
                self._status = response.status_code
            if "content-encoding" in response.headers:  # nothing limits what it becomes
                raise httpx2.DecodingError("the answer is compressed, which was not asked for")
            # The `mcp` package limits each event of a stream.
            if not response.headers.get("content-type", "").startswith("text/event-stream"):
                response.stream = _bound_stream(response.stream)

        timeout = httpx2.Timeout(self._server.timeout, read=max(_IDLE_SECONDS, self._server.timeout))
        headers = {**self._server.headers, "accept-encoding": "identity"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=timeout, event_hooks={"response": [bound]}) as client,
            streamable_http_client(
                self._server.url, http_client=client, max_sse_event_size=MOST_BYTES
            ) as streams,
        ):
            yield streams


def is_unknown_session(error: Exception) -> bool:
    """Whether a server with a URL did not know the session, so that it has not run the tool."""
    return getattr(error, "message", None) == "Session terminated"


def _bound_stream(stream: Any) -> Any:
    """A stream of bytes with a limit."""
    import httpx2

    class Bounded(httpx2.AsyncByteStream):
        async def aclose(self) -> None:
            await stream.aclose()

        async def __aiter__(self) -> AsyncIterator[bytes]:
            count = 0
            async for chunk in stream:
                count += len(chunk)
                if count > MOST_BYTES:
                    raise httpx2.StreamError(f"the answer has more than {MOST_BYTES / 1e6:.0f} MB")
                yield chunk

    return Bounded()
