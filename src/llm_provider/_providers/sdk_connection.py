"""Connections of the two SDKs that share a code base, openai and anthropic, for both of their transports.

Requests go through the SDK's public low-level `post`: it keeps authentication, base URL, headers and
error classes, and leaves out the typed parameter and response models, which cost most of a call's CPU.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from types import ModuleType
from typing import Any

from .._runtime.canonical_json import canonical
from . import http_client
from .adapter import OnHeaders, Outgoing
from .sse import events

MAX_CONNECTIONS = 4096
"""Connections one process may hold per SDK. The SDKs' own limit of 100 idle ones makes a burst of 256
reconnect 156 times; concurrency is limited by `_limits`, not by a pool."""

READ_TO_END_SECONDS = 0.1
"""Longest wait for the end of a body after `[DONE]`; openai 3's own figure."""


class _Address:
    """One operation of one server with one key: the SDK's client for it, and what `post` takes each time."""

    __slots__ = ("client", "url")

    def __init__(self, client: Any, path: str) -> None:
        self.client = client
        # Absolute, since the SDK takes a second longer way to put a relative one together.
        self.url = f"{str(client.base_url).rstrip('/')}{path}"


class PostConnection:
    """SDK clients sharing one HTTP client, one client per server and key.

    Args:
        sdk: The SDK's module.
        transport: "aiohttp" (HTTP/1.1), "http2" or "http1".
        client_class: The SDK's asynchronous client class.
        client_options: What that class takes besides the server, the key and the HTTP client.
        post_options: What the SDK's `post` takes besides what every request gives it.
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
        post_options: Mapping[str, Any],
    ) -> None:
        http_client.load(transport)
        self._sdk = sdk
        self._response_class = http_client.library_of(sdk.DefaultAsyncHttpxClient).Response
        self._transport = transport
        self._client_class = client_class
        self._client_options = client_options
        self._post_options = post_options
        self._path = path
        self._stream_fields = stream_fields
        self._http_client: Any = None
        self._clients: dict[tuple[str | None, str], Any] = {}
        self._addresses: dict[tuple[str | None, str, str], _Address] = {}
        # For the SDK, and as it is told to the server.
        self._timeout = functools.lru_cache(maxsize=64)(
            lambda total, connect: (sdk.Timeout(total, connect=connect), str(total))
        )

    def _address(self, outgoing: Outgoing) -> _Address:
        place = (outgoing.target.base_url, outgoing.key.identity, outgoing.encoded.operation)
        address = self._addresses.get(place)
        if address is None:
            client = self._client(outgoing)
            address = self._addresses[place] = _Address(client, self._path(outgoing.encoded.operation))
        return address

    def _client(self, outgoing: Outgoing) -> Any:
        identity = (outgoing.target.base_url, outgoing.key.identity)
        client = self._clients.get(identity)
        if client is None:
            if self._http_client is None:
                self._http_client = build_http_client(self._sdk, self._transport)
            client = self._clients[identity] = getattr(self._sdk, self._client_class)(
                base_url=outgoing.target.base_url,
                api_key=outgoing.key.reveal(),
                http_client=self._http_client,
                max_retries=0,
                **self._client_options,
            )
        return client

    async def send(self, outgoing: Outgoing, on_headers: OnHeaders) -> bytes:
        """Post and return the body of a successful answer."""
        address = self._address(outgoing)
        response = await address.client.post(
            address.url,
            content=outgoing.body,
            cast_to=self._response_class,
            options=self._options(outgoing),
        )
        on_headers(response.headers)
        content: bytes = response.content
        return content

    async def stream(self, outgoing: Outgoing, on_headers: OnHeaders) -> AsyncGenerator[Iterable[Any], None]:
        """Post and yield the JSON of server-sent events, those that arrived together at once."""
        payload = {**outgoing.encoded.payload, "stream": True, **self._stream_fields(outgoing)}
        response = await self._open(outgoing, canonical(payload))
        chunks = response.aiter_bytes()
        try:
            on_headers(response.headers)
            async for batch in events(chunks):
                yield batch
            # Closed in the middle of a body, as far as HTTP can tell, its connection would be lost. The
            # answer is complete: what goes wrong from here on is not its failure.
            if not getattr(response, "is_read", False):
                with contextlib.suppress(Exception):
                    async with asyncio.timeout(READ_TO_END_SECONDS):
                        async for _ in chunks:
                            pass
        finally:
            await response.aclose()

    async def parts(self, outgoing: Outgoing, on_headers: OnHeaders) -> AsyncGenerator[bytes, None]:
        """Post and yield the body of a successful answer as it comes."""
        response = await self._open(outgoing, outgoing.body)
        try:
            on_headers(response.headers)
            async for piece in response.aiter_bytes():
                yield piece
        finally:
            await response.aclose()

    async def _open(self, outgoing: Outgoing, body: bytes) -> Any:
        """Post and return the response before its body has come."""
        address = self._address(outgoing)
        # Asked for the response itself, the SDK makes no stream of its own, which decodes each event with
        # more care than its JSON takes.
        return await address.client.post(
            address.url,
            content=body,
            cast_to=self._response_class,
            stream=True,
            stream_cls=self._sdk.AsyncStream[object],
            options=self._options(outgoing),
        )

    def _options(self, outgoing: Outgoing) -> dict[str, Any]:
        timeout, seconds = self._timeout(outgoing.timeout, outgoing.timeouts.connect)
        # Given in full: a missing one is copied from a default, deeply, for each request.
        return {
            "params": {},
            # The first two are the SDK's own, which takes several times as long to put them in afterwards,
            # and would not know of the retries.
            "headers": {
                "x-stainless-retry-count": str(outgoing.retries),
                "x-stainless-read-timeout": seconds,
                **outgoing.encoded.headers,
            },
            "timeout": timeout,
            "max_retries": 0,
            # Not sent; but the SDK would make one, in a slower way.
            "idempotency_key": os.urandom(16).hex(),
            "follow_redirects": False,
            "post_parser": self._sdk.NOT_GIVEN,
            **self._post_options,
        }

    async def close(self) -> None:
        """Close the shared HTTP client, and with it every connection."""
        self._clients.clear()
        self._addresses.clear()
        client, self._http_client = self._http_client, None
        if client is not None:
            await client.aclose()


def build_http_client(sdk: ModuleType, transport: str) -> Any:
    """The SDK's kind of HTTP client over the chosen transport; redirects are never followed.

    A followed redirect would carry the prompt, and with some clients the key, to another host.
    """
    library = http_client.library_of(sdk.DefaultAsyncHttpxClient)
    if transport == "aiohttp" and http_client.is_direct():
        return http_client.client_class(library)()
    options: dict[str, Any] = {
        "follow_redirects": False,
        "limits": library.Limits(
            max_connections=MAX_CONNECTIONS,
            max_keepalive_connections=MAX_CONNECTIONS,
            keepalive_expiry=http_client.KEEPALIVE_SECONDS,
        ),
    }
    if transport == "aiohttp":
        return sdk.DefaultAioHttpClient(**options)
    return sdk.DefaultAsyncHttpxClient(http2=transport == "http2", **options)
