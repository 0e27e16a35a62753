"""Connections of the google-genai SDK.

What is sent is exactly the payload that the cache key covers: an HTTP client of our own, which the SDK takes
as `aiohttp_client=` or `httpx_async_client=`, puts the ready bytes in the place of the SDK's body. The SDK's
retries, redirects, continuation of long answers and function calling are off; its environment variables for
other endpoints and API versions have no effect.

A call goes one of two ways. The private one enters the SDK below its typed models, where it still chooses
address and headers, keeps the key, and raises its errors; it is taken only with releases whose private
methods are known, `PRIVATE_WAY`. The public one, `generate_content`, is there for all others and costs
several times as much.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import functools
import importlib
import logging
import math
import os
import ssl
import warnings
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any, Self, cast

from ..._errors import APIResponseValidationError
from .. import http_client
from ..adapter import OnHeaders, Outgoing, Parts
from ..errors import headers_of
from ..sdk_connection import MAX_CONNECTIONS
from ..sse import events
from .decode import error_of

PRIVATE_WAY = ((3, 0), (3, 4))
"""The first and the last release of the SDK whose private request methods are as they are used here."""


_EMBEDS = ":batchEmbedContents"
_UNREADABLE = (ValueError, TypeError, AttributeError, KeyError)

_MOST_PREPARED = 256
"""Prepared requests kept, of some kB each."""


class _Exchange:
    """What the HTTP client gets and gives beside the SDK, which has no place for either.

    A context that follows a call from sending to its answer, or to the first event of its stream. One of
    `contextlib`'s would be three objects.

    Raises:
        LLMError: a failure whose body is not the JSON that its headers promise: the status still tells.
    """

    __slots__ = ("_token", "outgoing", "response")

    def __init__(self, outgoing: Outgoing) -> None:
        self.outgoing = outgoing
        self.response: Any = None

    def __enter__(self) -> Self:
        self._token = _EXCHANGE.set(self)
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        _EXCHANGE.reset(self._token)
        if isinstance(error, ValueError):
            status = getattr(self.response, "status", getattr(self.response, "status_code", 200))
            if status != 200:
                raise error_of(None, status=status, headers=headers_of(self.response)) from error


_EXCHANGE: ContextVar[_Exchange] = ContextVar("exchange")


class GeminiConnection:
    """google-genai clients sharing one HTTP client, one client per server and key.

    Args:
        transport: "aiohttp" (HTTP/1.1), "http2" or "http1" (both httpx2).
        private: Whether the private way may be taken; None for where its methods are known.
    """

    def __init__(self, transport: str, *, private: bool | None = None) -> None:
        # Not with the first client: it takes seconds, which would count as the first attempt's.
        sdk = importlib.import_module("google.genai")
        http_client.load(transport)
        self._private = _is_known(sdk.__version__) if private is None else private
        self._transport = transport
        self._http_client: Any = None
        self._clients: dict[tuple[str | None, str], Any] = {}
        self._prepared: dict[tuple[Any, ...], Any] = {}
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
            async_client_args={"ssl": self._certificates},
            **{slot: self._http_client},
        )
        with _unheard("Both GOOGLE_API_KEY"):
            return genai.Client(vertexai=False, api_key=outgoing.key.reveal(), http_options=options)

    async def send(self, outgoing: Outgoing, on_headers: OnHeaders) -> bytes:
        """Post and return the body of a successful answer."""
        if self._private:
            # The SDK would make a text of the body.
            response = await self._open(outgoing, events=False)
        else:
            with _Exchange(outgoing) as exchange:
                models = self._client(outgoing).aio.models
                if outgoing.encoded.operation.endswith(_EMBEDS):
                    await _embed(models, self._typed_call(outgoing), exchange)
                else:
                    await models.generate_content(**self._typed_call(outgoing))
            response = exchange.response
        try:
            on_headers(response.headers)
            body: bytes = await (response.read() if self._transport == "aiohttp" else response.aread())
        except BaseException:
            await _close_response(response)
            raise
        return body

    async def stream(self, outgoing: Outgoing, on_headers: OnHeaders) -> AsyncGenerator[Iterable[Any], None]:
        """Post and yield the events' JSON, those that arrived together at once."""
        if not self._private:
            async with contextlib.aclosing(self._typed_stream(outgoing, on_headers)) as typed:
                async for event in typed:
                    yield [event]
            return
        response = await self._open(outgoing, events=True)
        try:
            on_headers(response.headers)
            async for batch in events(self._chunks(response)):
                yield batch
        finally:
            await _close_response(response)

    @property
    def parts(self) -> Parts | None:
        """`send`, as the body comes; the public way shows it only when all of it is there."""
        return self._body if self._private else None

    async def _body(self, outgoing: Outgoing, on_headers: OnHeaders) -> AsyncGenerator[bytes, None]:
        response = await self._open(outgoing, events=False)
        try:
            on_headers(response.headers)
            async for piece in self._chunks(response):
                yield piece
        finally:
            await _close_response(response)

    async def _open(self, outgoing: Outgoing, *, events: bool) -> Any:
        """Post, the private way, and return the response before its body has come.

        Args:
            outgoing: What is sent.
            events: Whether the answer shall come as events.
        """
        api = self._client(outgoing)._api_client  # noqa: SLF001  # see PRIVATE_WAY
        with _Exchange(outgoing) as exchange:
            request = self._request(api, outgoing, events=events)
            # The body is left to be read here.
            await api._async_request_once(request, True, implicit_retry=False)  # noqa: SLF001  # the same
        return exchange.response

    def _chunks(self, response: Any) -> AsyncIterator[bytes]:
        chunks = response.content.iter_any() if self._transport == "aiohttp" else response.aiter_bytes()
        return cast("AsyncIterator[bytes]", chunks)

    def _request(self, api: Any, outgoing: Outgoing, *, events: bool) -> Any:
        """A request of the SDK's, which prepares it once and sends it each time."""
        name = (*_place(outgoing), events)
        prepared = self._prepared.get(name)
        if prepared is None:
            version, _, resource = outgoing.encoded.operation.partition("/")
            if events:
                resource = resource.removesuffix(":generateContent") + ":streamGenerateContent?alt=sse"
            options = _http_options(outgoing, version)
            prepared = api._build_request("post", resource, {}, options)  # noqa: SLF001  # see PRIVATE_WAY
            self._remember(name, prepared)
        # A copy, since the SDK may add to the headers while it sends.
        return dataclasses.replace(prepared, headers=dict(prepared.headers))

    def _typed_call(self, outgoing: Outgoing) -> dict[str, Any]:
        """The public way's arguments; its contents are never sent, as the payload takes their place."""
        from google.genai import types

        name = _place(outgoing)
        call = self._prepared.get(name)
        if call is None:
            version, _, resource = outgoing.encoded.operation.partition("/")
            model, _, action = resource.rpartition(":")
            options = _http_options(outgoing, version)
            config: Any
            if f":{action}" == _EMBEDS:
                config = types.EmbedContentConfig(http_options=options)
            else:
                config = _config_class()(
                    http_options=options,
                    automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
                    automatic_continuation=False,
                    should_return_http_response=True,
                )
            # A content without parts is the one that the SDK is soonest done with.
            contents = types.Content(role="user")
            call = {"model": model, "contents": contents, "config": config}
            self._remember(name, call)
        return dict(call)

    def _remember(self, name: tuple[Any, ...], prepared: Any) -> None:
        if len(self._prepared) >= _MOST_PREPARED:
            # Headers may be others with every call.
            self._prepared.clear()
        self._prepared[name] = prepared

    async def _typed_stream(self, outgoing: Outgoing, on_headers: OnHeaders) -> AsyncGenerator[Any, None]:
        call = self._typed_call(outgoing)
        call["config"] = call["config"].model_copy(update={"should_return_http_response": None})
        stream = await self._client(outgoing).aio.models.generate_content_stream(**call)
        exchange = None
        try:
            # A request is sent when its first event is asked for; a context cannot span a `yield`.
            with _Exchange(outgoing) as exchange:
                chunk = await anext(stream, None)
            on_headers(exchange.response.headers)
            while chunk is not None:
                yield _event(chunk)
                chunk = await anext(stream, None)
        except (TypeError, AttributeError, KeyError, IndexError, UserWarning) as error:
            raise APIResponseValidationError(
                f"the SDK cannot read the stream: {type(error).__name__}: {error}"
            ) from error
        finally:
            await stream.aclose()
            # The SDK leaves an unread answer open until it is collected; one read to its end does not mind.
            if exchange is not None and exchange.response is not None:
                await _close_response(exchange.response)

    async def close(self) -> None:
        """Close every connection."""
        self._prepared.clear()
        while self._clients:
            await _close_client(self._clients.popitem()[1])
        # google-genai 3.0 starts a last task when a client is collected: it ends here, not in a dead loop.
        await asyncio.sleep(0)
        http_client, self._http_client = self._http_client, None
        if http_client is not None:
            await (http_client.close() if self._transport == "aiohttp" else http_client.aclose())


def _is_known(version: str) -> bool:
    first, last = PRIVATE_WAY
    numbers = version.split(".")[:2]
    return all(map(str.isdigit, numbers)) and first <= tuple(map(int, numbers)) <= last


def _place(outgoing: Outgoing) -> tuple[Any, ...]:
    """What a prepared request depends on."""
    target, encoded = outgoing.target, outgoing.encoded
    headers = tuple(sorted(encoded.headers.items()))
    return target.base_url, outgoing.key.identity, encoded.operation, headers, outgoing.timeout


def _http_options(outgoing: Outgoing, version: str) -> Any:
    from google.genai import types

    milliseconds = max(1, math.ceil(outgoing.timeout * 1000))
    return types.HttpOptions(
        api_version=version, headers=dict(outgoing.encoded.headers), timeout=milliseconds
    )


async def _embed(models: Any, call: dict[str, Any], exchange: _Exchange) -> None:
    """`embed_content`, for the response that the exchange keeps; the SDK has read its body by then."""
    try:
        await models.embed_content(**call)
    except _UNREADABLE:
        status = getattr(exchange.response, "status", getattr(exchange.response, "status_code", None))
        # A body with status 200 that the SDK cannot read is left to `decode`, which says what is wrong.
        if status != 200:
            raise


@functools.cache
def _config_class() -> Any:
    from google.genai import types

    class Config(types.GenerateContentConfig):
        """One that costs the SDK little.

        For each of some sixty fields it asks whether the configuration holds it, which pydantic answers by
        walking through all of them, and then whether there is such an attribute. And it copies the whole,
        deeply, for each call.
        """

        def __contains__(self, name: object) -> bool:
            return False

        def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Any:
            return super().model_copy(update=update, deep=deep) if update else self

    return Config


def _certificates() -> ssl.SSLContext:
    """The authorities that the SDK trusts: certifi's, or those that OpenSSL's variables name."""
    import certifi

    return ssl.create_default_context(
        cafile=os.environ.get("SSL_CERT_FILE") or certifi.where(), capath=os.environ.get("SSL_CERT_DIR")
    )


def _aiohttp_session(certificates: ssl.SSLContext, *, http2: bool) -> Any:
    import aiohttp

    with warnings.catch_warnings():
        # aiohttp warns that a subclass may break when it changes. The SDK takes nothing else.
        warnings.simplefilter("ignore", DeprecationWarning)

        class Session(aiohttp.ClientSession):
            # The SDK awaits it, which is all that it does with aiohttp's own kind of context manager.
            async def request(  # type: ignore[override]
                self, method: str, url: str, *, headers: Any, **_: Any
            ) -> Any:
                exchange = _EXCHANGE.get()
                exchange.response = await super().request(
                    method,
                    url,
                    data=http_client.body_of(exchange.outgoing.body),
                    headers=headers,
                    # The SDK gives one for the whole request.
                    timeout=http_client.connecting_within(exchange.outgoing.timeouts.connect),
                    allow_redirects=False,
                )
                return exchange.response

    # Where the environment names a proxy, aiohttp asks a thread for it twice per request.
    return http_client.session(certificates, Session, trust_env=not http_client.is_direct())


def _httpx_client(certificates: ssl.SSLContext, *, http2: bool) -> Any:
    import httpx2

    class Client(httpx2.AsyncClient):
        def build_request(self, method: str, url: Any, **options: Any) -> httpx2.Request:
            outgoing = _EXCHANGE.get().outgoing
            options["content"] = outgoing.body
            request = super().build_request(method, url, **options)
            request.extensions["timeout"]["connect"] = outgoing.timeouts.connect
            return request

        async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
            response = await super().send(request, **options)
            _EXCHANGE.get().response = response
            return response

    return Client(
        http2=http2,
        verify=certificates,
        follow_redirects=False,
        limits=httpx2.Limits(
            max_connections=MAX_CONNECTIONS,
            max_keepalive_connections=MAX_CONNECTIONS,
            keepalive_expiry=http_client.KEEPALIVE_SECONDS,
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
