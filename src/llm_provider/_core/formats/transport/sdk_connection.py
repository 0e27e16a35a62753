"""Connections of the openai and anthropic SDKs, which share a code base, for all their transports.

Requests go through the SDKs' public low-level `post`. It keeps authentication, base URL, headers and error
classes, and leaves out the typed models of parameters and responses. It takes 46 % off a call by openai 2 and
26 % off one by anthropic: 34,100 bytecode instructions instead of 62,900, and 32,000 instead of 43,100, over
the SDKs' own bridge to aiohttp (Python 3.11, `python -m benchmarks.hot_path`).
"""

import asyncio
import contextlib
import functools
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from types import ModuleType
from typing import Any, NamedTuple

from ... import doors
from ...pace.call_limits import most_connections
from ...requests.route import Route
from ...runtime import randomness
from ...runtime.canonical_json import canonical, write_exactly
from ...runtime.json_pieces import loads
from ...settings import MAX_RESPONSE_BYTES
from ..protocol import IsComplete, OnHeaders, Outgoing, never
from . import body_size, departure, http_client, http_pools, proxies
from .sse import events

MAX_CONNECTIONS = 4096
"""Connections that a process may hold per SDK. With the SDKs' own limit of 100 idle ones, each burst of 256
requests opens 156 new ones. Concurrency is limited by `_core/pace`, not by the pool."""

READ_TO_END_SECONDS = 0.1
"""Seconds to wait for the end of a body after its last event; openai 3 waits as long."""


class _Endpoint(NamedTuple):
    """One operation of one server with one key: the SDK's method that posts, URLs, and more headers."""

    post: Any
    url: str
    stream_url: str
    headers: Mapping[str, Any]


class PostConnection:
    """SDK clients that share one HTTP client, one client per server and key.

    `most_bytes` are the most decoded bytes of an answer. `path` returns an operation's path below the base
    URL, `stream_fields` what a streamed request adds to its payload, and `stream_url` the URL that streams
    what another one answers whole. `client_options` and `post_options` are those of the SDK that no request
    sets otherwise.
    """

    def __init__(
        self,
        sdk: ModuleType,
        transport: str,
        most_bytes: int,
        *,
        client_class: str,
        path: Callable[[str], str],
        stream_fields: Callable[[Outgoing], Mapping[str, Any]],
        stream_url: Callable[[str], str] = lambda url: url,
        client_options: Mapping[str, Any],
        post_options: Mapping[str, Any],
    ) -> None:
        http_client.load(transport)
        self._sdk = sdk
        self._response_class = http_client.library_of(sdk.DefaultAsyncHttpxClient).Response
        self._transport = transport
        self._most_bytes = most_bytes
        self._client_class = client_class
        self._client_options = client_options
        self._post_options = post_options
        self._path = path
        self._stream_fields = stream_fields
        self._stream_url = stream_url
        self._http_client: Any = None
        self._clients: dict[tuple[Route, str | None, str], Any] = {}
        self._endpoints: dict[tuple[Route, str | None, str, str], _Endpoint] = {}
        self._timeout = functools.lru_cache(maxsize=64)(
            lambda total, connect: sdk.Timeout(total, connect=connect)
        )

    def _endpoint(self, outgoing: Outgoing) -> _Endpoint:
        target = outgoing.target
        key = (target.route, target.base_url, outgoing.key.identity, outgoing.encoded.operation)
        endpoint = self._endpoints.get(key)
        if endpoint is None:
            client, path = self._client(outgoing), self._path(outgoing.encoded.operation)
            post, headers = (
                functools.partial(doors.authorization.post_with_token, outgoing.key, client.post),
                {},
            )
            if outgoing.key.is_static:
                post, headers = (
                    client.post,
                    doors.authorization.key_headers(target, outgoing.key, self._sdk.Omit()),
                )
            # Absolute: joining a relative URL to the base costs the SDK 5 % of a call.
            base = str(client.base_url).rstrip("/")
            if path.startswith("//"):
                # The native endpoints of a server of the user's own lie beside those of OpenAI's format.
                base, path = base.removesuffix("/v1"), path[1:]
            url = base + path
            endpoint = self._endpoints[key] = _Endpoint(post, url, self._stream_url(url), headers)
        return endpoint

    def _client(self, outgoing: Outgoing) -> Any:
        target = outgoing.target
        identity = (target.route, target.base_url, outgoing.key.identity)
        client = self._clients.get(identity)
        if client is None:
            if self._http_client is None:
                self._http_client = build_http_client(self._sdk, self._transport, self._most_bytes)
            assert target.base_url is not None, "the SDK would send to its own server"
            client = getattr(self._sdk, self._client_class)(
                base_url=target.base_url,
                api_key=outgoing.key.reveal(),
                http_client=self._http_client,
                max_retries=0,
                **self._client_options,
            )
            if not outgoing.key.is_static and hasattr(client, "auth_token"):
                # Then Anthropic's SDK writes the header that each request replaces, and no other one.
                client.api_key, client.auth_token = None, outgoing.key.reveal()
            # The headers of the environment belong to the request: the SDK logs its own ones.
            self._clients[identity] = _parse_urls_once(
                replace_headers(client, doors.authorization.repeat_key(target, outgoing.key))
            )
        return client

    async def send(self, outgoing: Outgoing, on_headers: OnHeaders) -> bytes:
        endpoint = self._endpoint(outgoing)
        response = await endpoint.post(
            endpoint.url,
            content=outgoing.body,
            cast_to=self._response_class,
            options=self._options(outgoing, endpoint),
        )
        on_headers(response.headers)
        content: bytes = response.content
        return content

    async def stream(
        self, outgoing: Outgoing, on_headers: OnHeaders, is_complete: IsComplete = never
    ) -> AsyncGenerator[Iterable[Any], None]:
        encoded = outgoing.encoded
        payload = encoded.add_labels(encoded.payload) if outgoing.samples == 1 else loads(outgoing.body)
        payload = {**payload, **self._stream_fields(outgoing)}
        # As in `Operation.body`, a schema keeps the order of its fields.
        body = canonical(payload) if encoded.structure is None else write_exactly(payload)
        endpoint = self._endpoint(outgoing)
        response = await self._open(outgoing, endpoint, endpoint.stream_url, body)
        chunks = response.aiter_bytes()
        framed = response.headers.get("content-type", "").startswith(doors.aws_frames.AWS_FRAMES)
        try:
            on_headers(response.headers)
            async for batch in (
                doors.aws_frames.read_frames(chunks) if framed else events(chunks, mark_end=True)
            ):
                yield batch
                if is_complete():
                    break
            # A connection that is closed before the end of the body is lost to the pool. The answer is
            # complete, so an error from here on does not make it fail.
            if not getattr(response, "is_read", False):
                with contextlib.suppress(Exception):
                    async with asyncio.timeout(READ_TO_END_SECONDS):
                        async for _ in chunks:
                            pass
        finally:
            await response.aclose()

    async def send_in_chunks(self, outgoing: Outgoing, on_headers: OnHeaders) -> AsyncGenerator[bytes, None]:
        endpoint = self._endpoint(outgoing)
        response = await self._open(outgoing, endpoint, endpoint.url, outgoing.body)
        try:
            on_headers(response.headers)
            async for piece in response.aiter_bytes():
                yield piece
        finally:
            await response.aclose()

    async def _open(self, outgoing: Outgoing, endpoint: _Endpoint, url: str, body: bytes) -> Any:
        """Post and return the response before its body has arrived."""
        # With its response class as `cast_to`, the SDK returns the response and not its own, slower, stream.
        return await endpoint.post(
            url,
            content=body,
            cast_to=self._response_class,
            stream=True,
            stream_cls=self._sdk.AsyncStream[object],
            options=self._options(outgoing, endpoint),
        )

    def _options(self, outgoing: Outgoing, endpoint: _Endpoint) -> dict[str, Any]:
        return {
            "headers": {
                # The SDK does not know of the attempts before this one, and would send 0.
                "x-stainless-retry-count": str(outgoing.retries),
                # As the SDK writes it, in a slower way.
                "x-stainless-read-timeout": str(outgoing.timeout),
                **outgoing.encoded.headers,
                **endpoint.headers,
            },
            "timeout": self._timeout(outgoing.timeout, outgoing.timeouts.connect),
            "max_retries": 0,
            # Never sent, but the SDK would generate one in a slower way.
            "idempotency_key": randomness.make_token(16),
            "follow_redirects": False,
            # The defaults. The SDK makes a deep copy of the default of an option that is missing, which costs
            # 2 to 3 % of a call.
            "params": {},
            "post_parser": self._sdk.NOT_GIVEN,
            **self._post_options,
        }

    async def close(self) -> None:
        self._clients.clear()
        self._endpoints.clear()
        client, self._http_client = self._http_client, None
        if client is not None:
            await client.aclose()


def replace_headers(client: Any, headers: Mapping[str, str]) -> Any:
    """The SDK's client with these headers in the place of those that it has read from the environment."""
    client._custom_headers = headers  # noqa: SLF001  # there is no public way to leave them out
    return client


def _parse_urls_once(client: Any) -> Any:
    """The SDK's client, which parses each URL for its first request only: 7 % of a call's instructions."""
    prepare = getattr(client, "_prepare_url", None)
    if prepare is not None:
        # The requests can share a URL, because it cannot be changed.
        client._prepare_url = functools.lru_cache(maxsize=64)(prepare)  # noqa: SLF001  # no public way
    return client


def build_http_client(sdk: ModuleType, transport: str, most_bytes: int = MAX_RESPONSE_BYTES) -> Any:
    """The SDK's kind of HTTP client over a transport: "aiohttp", "http2" or "http1".

    Redirects are never followed: they would carry the prompt, and with some clients the key, to another host.
    """
    library = http_client.library_of(sdk.DefaultAsyncHttpxClient)
    transport = proxies.choose_client(transport)
    if transport == "aiohttp":
        return http_client.client_class(library)(most_bytes)
    options: dict[str, Any] = {
        "follow_redirects": False,
        "headers": {"accept-encoding": body_size.ACCEPTED_ENCODINGS},
        "limits": limit_connections(library),
    }
    if not proxies.all_work(transport):
        # With one of its own, the client would fail for every server.
        options["transport"] = library.AsyncHTTPTransport(
            verify=library.create_ssl_context(), http2=transport == "http2", limits=options["limits"]
        )
    return http_pools.prepare(
        limit_class(sdk.DefaultAsyncHttpxClient, library)(most_bytes, http2=transport == "http2", **options)
    )


def limit_connections(library: ModuleType) -> Any:
    # Each of the three SDKs keeps its part of what this process may have.
    idle, seconds = int(min(MAX_CONNECTIONS, most_connections() // 3)), http_client.KEEPALIVE_SECONDS
    return library.Limits(
        max_connections=MAX_CONNECTIONS, max_keepalive_connections=idle, keepalive_expiry=seconds
    )


@functools.cache
def limit_class(client_class: Any, library: ModuleType) -> Any:
    """A client class that reads only a number of bytes of each answer, and no bytes beyond its end."""

    class LimitedClient(client_class):  # type: ignore[misc]  # known at run time only
        def __init__(self, most_bytes: int, **options: Any) -> None:
            super().__init__(**options)
            self._most_bytes = most_bytes
            self.most_whole: int | None = None
            """The most bytes of an answer that the SDK reads as JSON. A file may have more."""

        async def send(self, request: Any, *, stream: bool = False, **options: Any) -> Any:
            departure.watch(request)
            response = await super().send(request, stream=True, **options)
            most_whole = None if stream else self.most_whole
            body_size.limit_httpx(library, response, most_whole or self._most_bytes)
            if not stream:
                try:
                    await response.aread()
                    if most_whole is not None:
                        await body_size.check_json(response.content)
                except BaseException:
                    await response.aclose()
                    raise
            return response

    return LimitedClient
