"""Connections of the google-genai SDK.

The SDK's own request types are bypassed by its public `HttpOptions.extra_body`: what is sent is exactly the
payload that the cache key covers. Its retries, redirects, continuation of long answers and function calling
are off; its environment variables for other endpoints and API versions have no effect.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import logging
import math
import os
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any
from urllib.request import getproxies

from .._errors import BadResponse
from ._adapter import Outgoing
from ._failures import headers_of
from ._generate_content import error_of
from ._sdk import CONNECT_TIMEOUT, KEEPALIVE_SECONDS, MAX_CONNECTIONS


@dataclass(slots=True)
class _Exchange:
    """What the HTTP client tells about one call: the SDK itself hands out neither of these."""

    deadline: asyncio.Timeout
    response: Any = None


_EXCHANGE: ContextVar[_Exchange] = ContextVar("exchange")


@contextlib.asynccontextmanager
async def _exchange() -> AsyncIterator[_Exchange]:
    """Follows a call from sending to its answer, or to the first event of its stream.

    Opening a connection may take `CONNECT_TIMEOUT`; waiting for the answer is limited by the SDK.

    Raises:
        aiohttp.ConnectionTimeoutError: no connection in time.
        LLMError: a failure whose body is not the JSON that its headers promise: the status still tells.
    """
    deadline = asyncio.timeout(None)
    exchange = _Exchange(deadline)
    try:
        async with deadline:
            token = _EXCHANGE.set(exchange)
            try:
                yield exchange
            finally:
                _EXCHANGE.reset(token)
    except TimeoutError:
        if deadline.expired():
            import aiohttp

            raise aiohttp.ConnectionTimeoutError(f"no connection within {CONNECT_TIMEOUT:g} s") from None
        raise
    except ValueError as error:
        status = getattr(exchange.response, "status", 200)
        if status == 200:
            raise
        raise error_of(None, status=status, headers=headers_of(exchange.response)) from error


class GeminiConnection:
    """google-genai clients sharing one HTTP client, one client per server and key.

    Args:
        transport: "aiohttp" (HTTP/1.1), "http2" or "http1" (both httpx2).
    """

    def __init__(self, transport: str) -> None:
        # Not with the first client: it takes seconds, which would count as the first attempt's.
        importlib.import_module("google.genai")
        self._transport = transport
        self._http_client: Any = None
        self._clients: dict[tuple[str | None, str], Any] = {}
        self._certificates: ssl.SSLContext | None = None

    def _client(self, outgoing: Outgoing) -> Any:
        identity = (outgoing.target.base_url, outgoing.key.identity)
        client = self._clients.get(identity)
        if client is None:
            client = self._clients[identity] = self._build_client(outgoing)
        return client

    def _build_client(self, outgoing: Outgoing) -> Any:
        from google import genai
        from google.genai import types

        if self._http_client is None:
            # Shared by all clients: the SDK would read the system's certificates four times for each.
            self._certificates = _certificates()
            build = _aiohttp_session if self._transport == "aiohttp" else _httpx_client
            self._http_client = build(self._certificates, http2=self._transport == "http2")
        slot = "aiohttp_client" if self._transport == "aiohttp" else "httpx_async_client"
        options = types.HttpOptions(
            base_url=outgoing.target.base_url,
            # One attempt given here also takes away the SDK's hidden second one after a broken connection.
            retry_options=types.HttpRetryOptions(attempts=1),
            client_args={"verify": self._certificates},
            async_client_args={"ssl": self._certificates, "allow_redirects": False},
            **{slot: self._http_client},
        )
        with _unheard("Both GOOGLE_API_KEY"):
            return genai.Client(vertexai=False, api_key=outgoing.key.reveal(), http_options=options)

    def _call(self, outgoing: Outgoing) -> dict[str, Any]:
        version, _, resource = outgoing.wire.operation.partition("/")
        return {
            "model": resource.removesuffix(":generateContent"),
            # Never sent: the payload's own contents take its place.
            "contents": "x",
            "config": {
                "http_options": {
                    "api_version": version,
                    "extra_body": outgoing.wire.payload,
                    "headers": dict(outgoing.wire.headers),
                    "timeout": max(1, math.ceil(outgoing.timeout * 1000)),
                },
                "automatic_function_calling": {"disable": True},
                "automatic_continuation": False,
            },
        }

    async def send(self, outgoing: Outgoing) -> bytes:
        """Post and return the body of a successful answer."""
        client, call = self._client(outgoing), self._call(outgoing)
        call["config"] |= {"should_return_http_response": True}
        async with _exchange():
            response = await client.aio.models.generate_content(**call)
        body: str = response.sdk_http_response.body
        return body.encode()

    async def stream(self, outgoing: Outgoing) -> AsyncGenerator[Any, None]:
        """Post and yield each event's JSON."""
        client = self._client(outgoing)
        stream = await client.aio.models.generate_content_stream(**self._call(outgoing))
        exchange = None
        try:
            # A request is sent when its first event is asked for; a deadline cannot span a `yield`.
            async with _exchange() as exchange:
                chunk = await anext(stream, None)
            while chunk is not None:
                yield _event(chunk)
                chunk = await anext(stream, None)
        except (TypeError, AttributeError, KeyError, IndexError, UserWarning) as error:
            raise BadResponse(f"the SDK cannot read the stream: {type(error).__name__}: {error}") from error
        finally:
            await stream.aclose()
            # The SDK leaves an unread answer open until it is collected; one read to its end does not mind.
            if exchange is not None and exchange.response is not None:
                await _close_response(exchange.response)

    async def close(self) -> None:
        """Close every connection."""
        while self._clients:
            await _close_client(self._clients.popitem()[1])
        # google-genai 3.0 starts a last task when a client is collected: it ends here, not in a dead loop.
        await asyncio.sleep(0)
        http_client, self._http_client = self._http_client, None
        if http_client is not None:
            await (http_client.close() if self._transport == "aiohttp" else http_client.aclose())


def _certificates() -> ssl.SSLContext:
    """The authorities that the SDK trusts: certifi's, or those that OpenSSL's variables name."""
    import certifi

    return ssl.create_default_context(
        cafile=os.environ.get("SSL_CERT_FILE") or certifi.where(), capath=os.environ.get("SSL_CERT_DIR")
    )


def _aiohttp_session(certificates: ssl.SSLContext, *, http2: bool) -> Any:
    import aiohttp

    async def opening(*_: Any) -> None:
        _EXCHANGE.get().deadline.reschedule(asyncio.get_running_loop().time() + CONNECT_TIMEOUT)

    async def opened(*_: Any) -> None:
        _EXCHANGE.get().deadline.reschedule(None)

    async def answered(_session: Any, _context: Any, parameters: Any) -> None:
        _EXCHANGE.get().response = parameters.response

    # The SDK gives aiohttp one timeout for a whole request; these signals tell its parts apart.
    signals = aiohttp.TraceConfig()
    signals.on_connection_create_start.append(opening)
    signals.on_connection_create_end.append(opened)
    signals.on_request_end.append(answered)
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, ssl=certificates, keepalive_timeout=KEEPALIVE_SECONDS),
        cookie_jar=aiohttp.DummyCookieJar(),
        trace_configs=[signals],
        # Only where the environment names a proxy: aiohttp asks a thread for it, twice per request.
        trust_env=bool(getproxies()),
    )


def _httpx_client(certificates: ssl.SSLContext, *, http2: bool) -> Any:
    import httpx2

    async def shorten_connect(request: Any) -> None:
        timeouts = request.extensions["timeout"]
        timeouts["connect"] = min(timeouts["connect"] or CONNECT_TIMEOUT, CONNECT_TIMEOUT)

    async def answered(response: Any) -> None:
        _EXCHANGE.get().response = response

    return httpx2.AsyncClient(
        http2=http2,
        verify=certificates,
        follow_redirects=False,
        event_hooks={"request": [shorten_connect], "response": [answered]},
        limits=httpx2.Limits(
            max_connections=MAX_CONNECTIONS,
            max_keepalive_connections=MAX_CONNECTIONS,
            keepalive_expiry=KEEPALIVE_SECONDS,
        ),
    )


async def _close_client(client: Any) -> None:
    await client.aio.aclose()
    client.close()


async def _close_response(response: Any) -> None:
    if hasattr(response, "aclose"):
        await response.aclose()
    else:
        response.close()


@contextlib.contextmanager
def _unheard(beginning: str) -> Iterator[None]:
    """Drops a warning of the SDK's that is not true here: the key is given, so no variable is used."""
    logger = logging.getLogger("google_genai._api_client")

    def keep(record: logging.LogRecord) -> bool:
        return not record.getMessage().startswith(beginning)

    logger.addFilter(keep)
    try:
        yield
    finally:
        logger.removeFilter(keep)


_SDK_FIELDS = {"sdk_http_response", "automatic_function_calling_history", "parsed"}
_STANDARD_ALPHABET = str.maketrans("-_", "+/")


def _event(chunk: Any) -> dict[str, Any]:
    """A typed event as it was on the wire: the SDK renames citations, and spells bytes as in addresses."""
    event: dict[str, Any] = chunk.model_dump(
        mode="json", by_alias=True, exclude_none=True, exclude=_SDK_FIELDS
    )
    for candidate in event.get("candidates", ()):
        citations = candidate.get("citationMetadata", {})
        if "citations" in citations:
            citations["citationSources"] = citations.pop("citations")
        for entry in candidate.get("content", {}).get("parts", ()):
            if "thoughtSignature" in entry:
                entry["thoughtSignature"] = entry["thoughtSignature"].translate(_STANDARD_ALPHABET)
            if "data" in entry.get("inlineData", {}):
                entry["inlineData"]["data"] = entry["inlineData"]["data"].translate(_STANDARD_ALPHABET)
    return event
