"""The connection through every SDK, whose client gives URL, authentication, headers and error classes.

The SDK is asked for the URL and the headers of an operation once for all requests with the same server, key
and headers: its HTTP client here is a `Recorder`, which keeps them. The requests then go to one HTTP client
directly. When one fails, the SDK is asked again. The recorder gives it the answer or the exception, and the
SDK raises its own error. So a call by openai 2 has 14,400 bytecode instructions instead of 19,300, and a call
by anthropic 15,200 instead of 23,000 (Python 3.11, `python -m benchmarks.hot_path`).
"""

import asyncio
import contextlib
import functools
import importlib
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import MappingProxyType, ModuleType
from typing import Any, NamedTuple, cast

from ... import doors
from ...requests.routing import Target
from ...runtime.imports import exception_chain
from ...runtime.json_pieces import canonical, loads, write_exactly
from ..protocol import IsComplete, Outgoing, never
from . import environment, http_client, httpx_client
from .wire import events

READ_TO_END_SECONDS = 0.1
"""Seconds to wait for the end of a body after its last event; openai 3 waits as long."""

MOST_ENDPOINTS = 256
"""Endpoints that a connection knows, and SDK clients, some kB each. The headers and the key of requests may
differ with every call."""


@dataclass(slots=True)
class Exchange:
    """What an SDK would send, and the failure that it is told of; None where it is only asked."""

    failure: Any
    headers: dict[str, str] = field(default_factory=dict)
    url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SDK:
    """What differs between the SDKs.

    `build_client` takes the recorder too. `ask` lets a client send any body to an operation. It may change
    what was recorded. `live_headers` are the headers that the SDK writes anew for each request, in its words.
    `stream_url` is the URL that streams what another one answers whole. `stream_fields` are what a streamed
    request adds to its payload, and `stream_headers` the headers that differ.
    """

    library: ModuleType
    """`httpx` or `httpx2`."""
    build_client: Callable[[Outgoing, Any], Any]
    ask: Callable[[Any, Outgoing, Exchange], Awaitable[object]]
    live_headers: Callable[[Outgoing], Mapping[str, str]]
    stream_fields: Callable[[Outgoing], Mapping[str, Any]] = lambda _: {}
    stream_headers: Mapping[str, str] = field(default_factory=dict)
    stream_url: Callable[[str], str] = lambda url: url
    close_client: Callable[[Any], Awaitable[object]] | None = None
    certificates: Callable[[], ssl.SSLContext] | None = None
    """Builds the TLS context with the authorities that the SDK trusts; None for the library's own."""


class _Endpoint(NamedTuple):
    """One operation of one server with one key."""

    http_client: Any
    url: str
    stream_url: str
    headers: Mapping[str, str]
    live: tuple[str, ...]
    """The names of the headers that are written anew for each request."""


class SDKConnection:
    """Clients of one SDK, one for each server and key, and the one HTTP client that sends for all of them.

    `most_bytes` are the most decoded bytes of an answer.
    """

    def __init__(self, sdk: SDK, transport: str, most_bytes: int) -> None:
        if transport == "aiohttp":
            # A later import would count as part of the first attempt.
            importlib.import_module("aiohttp")
        self._sdk = sdk
        self._transport = transport
        self._most_bytes = most_bytes
        self._http_client: Any = None
        self._clients: dict[object, Any] = {}
        self._endpoints: dict[object, _Endpoint] = {}

    async def prepare(self, outgoing: Outgoing) -> None:
        # What fails here fails again when it is sent, as a failed request.
        with contextlib.suppress(Exception):
            # Without a pause, in which later calls would take the first slots.
            self._find_client().open()
            if outgoing.key.is_static:  # else its source is asked with the request
                self._find_sdk_client(outgoing)

    async def send(self, outgoing: Outgoing) -> bytes:
        answer = await self._open(outgoing, outgoing.body, whole=True)
        outgoing.headers = answer.headers
        return cast("bytes", answer.content)

    async def stream(
        self, outgoing: Outgoing, is_complete: IsComplete = never
    ) -> AsyncGenerator[Iterable[Any], None]:
        body, fields, encoded = outgoing.body, self._sdk.stream_fields(outgoing), outgoing.encoded
        if fields:
            payload = encoded.add_labels(encoded.payload) if outgoing.samples == 1 else loads(body)
            payload = {**payload, **fields}
            # As in `Operation.body`, a schema keeps the order of its fields.
            body = canonical(payload) if encoded.structure is None else write_exactly(payload)
        answer = await self._open(outgoing, body, streamed=True)
        chunks = answer.aiter_bytes()
        framed = answer.headers.get("content-type", "").startswith(doors.cloud_anthropic.AWS_FRAMES)
        batches = doors.cloud_anthropic.read_frames(chunks) if framed else events(chunks, mark_end=True)
        try:
            outgoing.headers = answer.headers
            async for batch in batches:
                yield batch
                if is_complete():
                    break
            # A connection that is closed before the end of the body is lost to the pool. The answer is
            # complete, so an error from here on does not make it fail.
            if not getattr(answer, "is_read", False):
                with contextlib.suppress(Exception):
                    async with asyncio.timeout(READ_TO_END_SECONDS):
                        async for _ in chunks:
                            pass
        finally:
            await answer.aclose()

    async def send_in_chunks(self, outgoing: Outgoing) -> AsyncGenerator[bytes, None]:
        answer = await self._open(outgoing, outgoing.body)
        try:
            outgoing.headers = answer.headers
            async for piece in answer.aiter_bytes():
                yield piece
        finally:
            await answer.aclose()

    async def _open(
        self, outgoing: Outgoing, body: bytes, *, streamed: bool = False, whole: bool = False
    ) -> Any:
        """Post and return a successful answer, before its body has arrived or after it.

        A token of the moment is renewed once where the provider refuses it, as part of the same attempt: a
        token that has expired is no sign of a limit.
        """
        endpoint = self._endpoints.get(_identity(outgoing)) or await self._find_endpoint(outgoing)
        url = endpoint.stream_url if streamed else endpoint.url
        live, key = self._sdk.live_headers(outgoing), outgoing.key
        headers = {**endpoint.headers, **{name: live[name] for name in endpoint.live}}
        if streamed:
            headers |= self._sdk.stream_headers
        token: dict[str, str] | None = None
        while True:
            is_last = token is not None or key.is_static
            if not key.is_static:
                token = await doors.authorization.fetch_headers(key, "POST", url, body)
                headers |= {name.lower(): value for name, value in token.items()}
            failure: Any
            try:
                answer = await endpoint.http_client.post(url, headers, body, outgoing)
                if answer.status_code // 100 == 2 and not whole:
                    return answer
                await http_client.read(answer)
                if answer.status_code // 100 == 2:
                    return answer
                failure = endpoint.http_client.build_response(answer)
                if not is_last and token and doors.authorization.renew_token(key, token, failure):
                    continue
            except Exception as error:
                failure = error
            break
        await self._ask(outgoing, failure)
        raise AssertionError("the SDK takes a failure for an answer")

    def _find_client(self) -> Any:
        if self._http_client is None:
            transport, library = environment.choose_client(self._transport), self._sdk.library
            kind = http_client.AioHttp if transport == "aiohttp" else httpx_client.Httpx
            trusted = self._sdk.certificates or library.create_ssl_context
            self._http_client = kind(library, transport, self._most_bytes, trusted)
        return self._http_client

    async def _find_endpoint(self, outgoing: Outgoing) -> _Endpoint:
        # Another task may close this connection while the SDK is asked.
        sender = self._find_client()
        exchange = await self._ask(outgoing, None)
        own = {name.lower() for name in outgoing.encoded.headers}
        headers = {name.lower(): value for name, value in exchange.headers.items()}
        live = tuple(name for name in self._sdk.live_headers(outgoing) if name in headers.keys() - own)
        if len(self._endpoints) >= MOST_ENDPOINTS:
            self._endpoints.clear()
        endpoint = _Endpoint(sender, exchange.url, self._sdk.stream_url(exchange.url), headers, live)
        self._endpoints[_identity(outgoing)] = endpoint
        return endpoint

    def _find_sdk_client(self, outgoing: Outgoing) -> Any:
        target = outgoing.target
        identity = (target.route, target.base_url, outgoing.key.identity)
        client = self._clients.get(identity)
        if client is None:
            if len(self._clients) >= MOST_ENDPOINTS:
                # A client that another task asks is kept by that task.
                self._clients.clear()
            recorder = recorder_class(self._sdk.library)()
            client = self._clients[identity] = self._sdk.build_client(outgoing, recorder)
        return client

    async def _ask(self, outgoing: Outgoing, failure: Any) -> Exchange:
        """What the SDK would send; with a failure, raise the error that the SDK makes of it."""
        exchange = Exchange(failure)
        token = _EXCHANGE.set(exchange)
        try:
            await self._sdk.ask(self._find_sdk_client(outgoing), outgoing, exchange)
        except Exception as error:
            if isinstance(failure, Exception) and failure not in exception_chain(error):
                # At the end of a program an SDK starts no threads any more: that must not hide the failure.
                raise failure from None
            # The SDK may not like the empty answer to what it would send.
            if failure is not None or not exchange.url:
                raise
        finally:
            _EXCHANGE.reset(token)
        return exchange

    async def close(self) -> None:
        self._endpoints.clear()
        while self._clients:
            await self._close_client(self._clients.popitem()[1])
        # google-genai 3.0 starts a last task for a client that is garbage: it ends here, while the loop runs.
        await asyncio.sleep(0)
        client, self._http_client = self._http_client, None
        if client is not None:
            await client.aclose()

    async def _close_client(self, client: Any) -> None:
        # A function of its own, so that the last client is garbage when it returns.
        if self._sdk.close_client is not None:
            await self._sdk.close_client(client)


def _identity(outgoing: Outgoing) -> tuple[object, ...]:
    target, encoded = outgoing.target, outgoing.encoded
    headers = tuple(sorted(encoded.headers.items())) if encoded.headers else ()
    return target.route, target.base_url, outgoing.key.identity, encoded.operation, headers


_OF_A_REQUEST = frozenset({"host", "content-length"})
"""The headers of a request that an HTTP client writes itself."""

_EXCHANGE: ContextVar[Exchange] = ContextVar("exchange")


@functools.cache
def recorder_class(library: ModuleType) -> Any:
    """An SDK's HTTP client for `httpx` or `httpx2`: an SDK accepts only subclasses of its library's class."""

    class Recorder(library.AsyncClient):  # type: ignore[name-defined,misc]  # known at run time only
        """Keeps what the SDK would send, and answers with the failure of the exchange."""

        def __init__(self) -> None:
            # Without a transport, the base class would build a connection pool and load certificates.
            super().__init__(transport=library.AsyncBaseTransport(), trust_env=False)

        def build_request(self, method: str, url: Any, *, headers: Any = None, **_: Any) -> Any:
            exchange = _EXCHANGE.get()
            exchange, request = _EXCHANGE.get(), library.Request(method, url)
            # google-genai passes a text, whose path may have characters that only the library encodes.
            exchange.url = str(request.url)
            if hasattr(headers, "raw"):
                coding = headers.encoding
                headers = {name.decode(coding): value.decode(coding) for name, value in headers.raw}
            # openai 3 passes pairs, google-genai a mapping, and the others httpx's headers.
            exchange.headers = dict(headers)
            return request

        async def send(self, request: Any, **_: Any) -> Any:
            exchange = _EXCHANGE.get()
            failure = exchange.failure
            # google-genai adds the key and other headers of Interactions to the request that was built.
            added = {name: request.headers[name] for name in request.headers if name not in _OF_A_REQUEST}
            exchange.headers.update(added)
            if isinstance(failure, Exception):
                raise failure
            return failure or library.Response(200, content=b"{}", request=request)

    return Recorder


def post_sdk(
    sdk: ModuleType,
    client_class: str,
    *,
    path: Callable[[str], str],
    client_options: Mapping[str, Any] = MappingProxyType({}),
    **differences: Any,
) -> SDK:
    """The openai or the anthropic SDK, which share a code base, by their public low-level `post`.

    `path` returns an operation's path below the base URL.
    """
    library = http_client.library_of(sdk.DefaultAsyncHttpxClient)

    def build_client(outgoing: Outgoing, recorder: Any) -> Any:
        target, key = outgoing.target, outgoing.key
        assert target.base_url is not None, "the SDK would send to its own server"
        client = getattr(sdk, client_class)(
            base_url=target.base_url,
            api_key=key.reveal(),
            http_client=recorder,
            max_retries=0,
            **client_options,
        )
        if not key.is_static and hasattr(client, "auth_token"):
            # Then Anthropic's SDK writes the header that each request replaces, and no other one.
            client.api_key, client.auth_token = None, key.reveal()
        # The headers of the environment belong to the request: the SDK logs its own ones.
        return replace_headers(client, doors.authorization.repeat_key(target, key), target)

    async def ask(client: Any, outgoing: Outgoing, _: Exchange) -> None:
        key, address = outgoing.key, path(outgoing.encoded.operation)
        base = str(client.base_url).rstrip("/")
        if address.startswith("//"):
            # The native endpoints of a server of the user's own lie beside its endpoints of OpenAI's format.
            base, address = base.removesuffix("/v1"), address[1:]
        headers = {
            **outgoing.encoded.headers,
            **(doors.authorization.key_headers(outgoing.target, key, sdk.Omit()) if key.is_static else {}),
        }
        options = {"headers": headers, "max_retries": 0}
        await client.post(base + address, body={}, cast_to=library.Response, options=options)

    def live_headers(outgoing: Outgoing) -> dict[str, str]:
        timeout = str(outgoing.timeouts.total)
        return {
            "x-stainless-retry-count": str(outgoing.retries),
            "x-stainless-read-timeout": timeout,
            "x-stainless-timeout": timeout,
        }

    return SDK(library=library, build_client=build_client, ask=ask, live_headers=live_headers, **differences)


def replace_headers(client: Any, headers: Mapping[str, str], target: Target) -> Any:
    """The SDK's client with these headers in the place of those that it has read from the environment."""
    client._custom_headers = headers  # noqa: SLF001  # there is no public way to leave them out
    # The account at OpenAI concerns no other host, and OpenAI refuses an empty one.
    is_own = target.provider == "openai"
    for name in ("organization", "project"):
        if isinstance(account := getattr(client, name, None), str):
            setattr(client, name, (account.strip() or None) if is_own else None)
    return client
