"""Connections of the two SDKs that share a code base, openai and anthropic, for both of their transports.

Requests go through the SDK's public low-level `post`: it keeps authentication, base URL, headers and
error classes, and leaves out the typed parameter and response models, which cost most of a call's CPU.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from types import ModuleType
from typing import Any

from .._errors import LLMError
from .._json import canonical
from ._adapter import Outgoing
from ._failures import error_fields, from_answer, from_exception, headers_of

MAX_CONNECTIONS = 4096
"""Connections one process may hold per SDK. The SDKs' own limit of 100 idle ones makes a burst of 256
reconnect 156 times; concurrency is limited by `_limits`, not by a pool."""

KEEPALIVE_SECONDS = 60.0
CONNECT_TIMEOUT = 15.0
"""Seconds to open a connection; the SDKs' 5 s fail on a cold burst over TLS."""

READ_TO_END_SECONDS = 0.1
"""Longest wait for the end of a body after `[DONE]`; openai 3's own figure."""


class PostConnection:
    """SDK clients sharing one HTTP client, one client per server and key.

    Args:
        sdk: The SDK's module.
        transport: "aiohttp" (HTTP/1.1), "http2" or "http1".
        client_class: The SDK's asynchronous client class.
        client_options: What that class takes besides the server, the key and the HTTP client.
        path: An operation's path below the base URL.
        stream_fields: What a streamed request adds to its payload.
    """

    def __init__(
        self,
        sdk: ModuleType,
        transport: str,
        *,
        client_class: str,
        path: Callable[[str], str],
        stream_fields: Callable[[Outgoing], Mapping[str, Any]],
        client_options: Mapping[str, Any],
    ) -> None:
        self._sdk = sdk
        self._transport = transport
        self._client_class = client_class
        self._client_options = client_options
        self._path = path
        self._stream_fields = stream_fields
        self._http_client: Any = None
        self._response_class: Any = None
        self._clients: dict[tuple[str | None, str], Any] = {}

    def _client(self, outgoing: Outgoing) -> Any:
        identity = (outgoing.target.base_url, outgoing.key.identity)
        client = self._clients.get(identity)
        if client is None:
            if self._http_client is None:
                self._http_client = build_http_client(self._sdk, self._transport)
                self._response_class = response_class(self._http_client)
            client = self._clients[identity] = getattr(self._sdk, self._client_class)(
                base_url=outgoing.target.base_url,
                api_key=outgoing.key.reveal(),
                http_client=self._http_client,
                max_retries=0,
                **self._client_options,
            )
        return client

    async def send(self, outgoing: Outgoing) -> bytes:
        """Post and return the body of a successful answer."""
        response = await self._client(outgoing).post(
            self._path(outgoing.wire.operation),
            content=outgoing.body,
            cast_to=self._response_class,
            options=self._options(outgoing),
        )
        content: bytes = response.content
        return content

    async def stream(self, outgoing: Outgoing) -> AsyncGenerator[Any, None]:
        """Post and yield each server-sent event's JSON."""
        client = self._client(outgoing)
        payload = {**outgoing.wire.payload, "stream": True, **self._stream_fields(outgoing)}
        stream = await client.post(
            self._path(outgoing.wire.operation),
            content=canonical(payload),
            cast_to=object,
            stream=True,
            stream_cls=self._sdk.AsyncStream[object],
            options=self._options(outgoing),
        )
        stream.response.stream = read_to_end(stream.response.stream)
        try:
            async for event in stream:
                yield event
        finally:
            await stream.close()

    def _options(self, outgoing: Outgoing) -> dict[str, Any]:
        headers = {"Content-Type": "application/json", **outgoing.wire.headers}
        timeout = self._sdk.Timeout(outgoing.timeout, connect=min(CONNECT_TIMEOUT, outgoing.timeout))
        return {"headers": headers, "timeout": timeout}

    async def close(self) -> None:
        """Close the shared HTTP client, and with it every connection."""
        self._clients.clear()
        client, self._http_client = self._http_client, None
        if client is not None:
            await client.aclose()


def build_http_client(sdk: ModuleType, transport: str) -> Any:
    """The SDK's own kind of HTTP client over the chosen transport; redirects are never followed.

    A followed redirect would carry the prompt, and with some clients the key, to another host.
    """
    http_library = sys.modules[http_library_name(sdk.DefaultAsyncHttpxClient)]
    options: dict[str, Any] = {
        "follow_redirects": False,
        "timeout": sdk.Timeout(600.0, connect=CONNECT_TIMEOUT),
        "limits": http_library.Limits(
            max_connections=MAX_CONNECTIONS,
            max_keepalive_connections=MAX_CONNECTIONS,
            keepalive_expiry=KEEPALIVE_SECONDS,
        ),
    }
    if transport == "aiohttp":
        return sdk.DefaultAioHttpClient(**options)
    return sdk.DefaultAsyncHttpxClient(http2=transport == "http2", **options)


def read_to_end(body: Any) -> Any:
    """A response body that, closed after `[DONE]`, is first read to its end, as openai 3 does by itself.

    openai 2 closes there, in the middle as far as HTTP can tell, which ends the connection with it: every
    stream would pay for a new one. Closed anywhere else, by a reader who has had enough, it is closed at
    once.
    """
    kinds = type(body).__mro__
    return _read_to_end_class(next(kind for kind in kinds if kind.__name__ == "AsyncByteStream"))(body)


@functools.cache
def _read_to_end_class(byte_stream: Any) -> Any:
    """The class of `read_to_end` for the base class that httpx, or httpx2, insists on."""

    class ReadToEnd(byte_stream):  # type: ignore[misc]  # known at run time only
        def __init__(self, body: Any) -> None:
            self._body = body
            self._chunks = aiter(body)
            self._last = b""

        async def __aiter__(self) -> AsyncIterator[bytes]:
            async for chunk in self._chunks:
                self._last = chunk
                yield chunk

        async def aclose(self) -> None:
            try:
                if self._last.rstrip().endswith(b"[DONE]"):
                    # The answer is complete: what goes wrong from here on is not its failure.
                    with contextlib.suppress(Exception):
                        async with asyncio.timeout(READ_TO_END_SECONDS):
                            async for _ in self._chunks:
                                pass
            finally:
                await self._body.aclose()

    return ReadToEnd


def http_library_name(client_class: type) -> str:
    """The name `httpx` or `httpx2`: openai 2 is built on the one, openai 3 and anthropic on the other."""
    for kind in client_class.__mro__:
        root = kind.__module__.partition(".")[0]
        if root in ("httpx", "httpx2"):
            return root
    raise TypeError(f"{client_class.__name__} is not built on httpx or httpx2")


def response_class(http_client: Any) -> Any:
    """The response class of the library that an SDK's HTTP client is built on."""
    return sys.modules[http_library_name(type(http_client))].Response


def map_error(error: BaseException) -> LLMError:
    """An exception of either SDK, or of its transport, as one of ours."""
    names = {kind.__name__ for kind in type(error).__mro__}
    if "APIError" not in names or names & {"APIConnectionError", "APIResponseValidationError"}:
        return from_exception(error)
    codes, message = error_fields(getattr(error, "body", None))
    return from_answer(
        getattr(error, "status_code", None),
        codes=codes,
        message=message or str(getattr(error, "message", "")),
        headers=headers_of(getattr(error, "response", None)),
    )
