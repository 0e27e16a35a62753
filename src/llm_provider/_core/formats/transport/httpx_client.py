"""The HTTP client over httpx or httpx2, and what their connections lack.

That is keepalive of TCP, answers after HTTP/2's orderly end, and early refusals. It sets private attributes
of httpcore, because there is no public way. A release without them works as before.
"""
# ruff: noqa: SLF001  # see above

import asyncio
import contextlib
import functools
import ssl
import sys
from collections.abc import Callable, Mapping
from http.cookiejar import CookieJar, DefaultCookiePolicy
from types import ModuleType
from typing import Any

from ...pace.call_limits import most_connections
from ..protocol import Outgoing
from . import environment, wire
from .http_client import KEEPALIVE, KEEPALIVE_SECONDS, read

MAX_CONNECTIONS = 4096
"""Connections that a process may hold per SDK. With the SDKs' own limit of 100 idle ones, each burst of 256
requests opens 156 new ones. Concurrency is limited by `_core/pace`, not by the pool."""

_LOOK_EVERY = 0.1
"""Seconds between two looks for an early answer, while the body of a request of HTTP/1.1 is sent."""


class Httpx:
    """Sends by a client of httpx or httpx2, which an SDK's own HTTP client is too: "http2" or "http1"."""

    def __init__(
        self, library: ModuleType, transport: str, most_bytes: int, trusted: Callable[[], ssl.SSLContext]
    ) -> None:
        self._client = build_client(library, transport, most_bytes, trusted)
        self._timeout = functools.lru_cache(maxsize=64)(
            lambda total, connect: library.Timeout(total, connect=connect)
        )

    def open(self) -> None:
        """Its client is open from the beginning."""

    async def post(self, url: str, headers: Mapping[str, str], body: bytes, outgoing: Outgoing) -> Any:
        timeout = self._timeout(outgoing.timeout, outgoing.timeouts.connect)
        request = self._client.build_request("POST", url, headers=headers, content=body, timeout=timeout)
        return await self._client.send(request, stream=True)

    def build_response(self, answer: Any) -> Any:
        """An answer that has been read, which an SDK makes its error of."""
        return answer

    async def aclose(self) -> None:
        await self._client.aclose()


def build_client(
    library: ModuleType, transport: str, most_bytes: int, trusted: Callable[[], ssl.SSLContext] | None = None
) -> Any:
    """A client that reads at most so many bytes of an answer, over "http2" or "http1".

    Redirects are never followed: they would carry the prompt, and with some clients the key, to another host.
    """
    limits = library.Limits(
        max_connections=MAX_CONNECTIONS,
        # Each of the three SDKs keeps its part of what this process may have.
        max_keepalive_connections=int(min(MAX_CONNECTIONS, most_connections() // 3)),
        keepalive_expiry=KEEPALIVE_SECONDS,
    )
    client = _client_class(library)(
        most_bytes,
        follow_redirects=False,
        # A client sends for several keys: a cookie would carry the session of one to another.
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
        headers={"accept-encoding": wire.ACCEPTED_ENCODINGS},
        http2=transport == "http2",
        limits=limits,
        timeout=None,
        # With a proxy that it cannot use, the client would fail for every server.
        trust_env=not any(environment.find_problems(transport)),
        verify=(trusted or library.create_ssl_context)(),
    )
    _prepare_pools(client)
    return client


@functools.cache
def _client_class(library: ModuleType) -> Any:
    """A client class that reads only a number of bytes of each answer, and no bytes beyond its end."""

    class LimitedClient(library.AsyncClient):  # type: ignore[name-defined,misc]  # known at run time only
        def __init__(self, most_bytes: int, **options: Any) -> None:
            super().__init__(**options)
            self._most_bytes = most_bytes
            self.most_whole: int | None = None
            """The most bytes of an answer that the SDK reads as JSON. A file may have more."""

        async def send(self, request: Any, *, stream: bool = False, **options: Any) -> Any:
            leaving = wire.departure.get()
            # The request is held until its headers are written.
            leaving.hold()

            async def note(event: str, _: object) -> None:
                if event.endswith("send_request_headers.started"):
                    leaving.leave()

            request.extensions["trace"] = note
            response = await super().send(request, stream=True, **options)
            most_whole = None if stream else self.most_whole
            wire.limit_httpx(library, response, most_whole or self._most_bytes)
            if not stream:
                await read(response)
                if most_whole is not None:
                    await wire.check_json(response.content)
            return response

    return LimitedClient


def _prepare_pools(client: Any) -> None:
    for transport in (client._transport, *client._mounts.values()):
        with contextlib.suppress(AttributeError):
            _prepare_pool(transport._pool)


def _prepare_pool(pool: Any) -> None:
    backend, create = pool._network_backend, pool.create_connection
    connect = backend.connect_tcp

    async def connect_tcp(*arguments: Any, **named: Any) -> Any:
        return await connect(*arguments, **{**named, "socket_options": KEEPALIVE})

    def create_connection(origin: Any) -> Any:
        connection = create(origin)
        kind: Any = type(connection)
        connection.__class__ = _watching(kind)
        return connection

    backend.connect_tcp, pool.create_connection = connect_tcp, create_connection


@functools.cache
def _watching(kind: Any) -> type:
    class Watching(kind):  # type: ignore[misc]  # known at run time only
        """Sees which protocol its connection speaks, once it is open."""

        def __setattr__(self, name: str, value: Any) -> None:
            super().__setattr__(name, value)
            if name == "_connection":
                with contextlib.suppress(AttributeError):
                    if hasattr(value, "_h2_state"):
                        _complete_http2(value, value._h2_state)
                    elif hasattr(value, "_h11_state"):
                        _complete_http1(value, value._network_stream)

    return Watching


class _EarlyAnswerError(Exception):
    """An answer, or the end of its stream, came before the whole body was sent."""


def _complete_http1(connection: Any, stream: Any) -> None:
    """End a body that the server does not read with its answer."""
    send_body = connection._send_request_body

    async def send_until_answer(request: Any) -> None:
        sending = asyncio.create_task(send_body(request))
        try:
            while not (await asyncio.wait({sending}, timeout=_LOOK_EVERY))[0]:
                if stream.get_extra_info("is_readable"):
                    return
            await sending
        finally:
            sending.cancel()

    connection._send_request_body = send_until_answer


def _complete_http2(connection: Any, state: Any) -> None:
    """Complete a connection of HTTP/2.

    After an orderly GOAWAY, the requests up to its last stream get their answers. The others were not worked
    on (RFC 9113 §6.8), and go to another connection. A body that waits for room ends with the answer (§8.1).
    """
    from h2.errors import ErrorCodes
    from h2.exceptions import NoAvailableStreamIDError, ProtocolError
    from hyperframe.frame import GoAwayFrame

    elsewhere = sys.modules[type(connection).__module__.partition(".")[0]].ConnectionNotAvailable
    frames, unsent, not_begun = state._frame_dispatch_table, set[int](), object()
    fail, receive, close = frames[GoAwayFrame], connection._receive_stream_event, connection._response_closed
    send_body = connection._send_request_body

    def end(frame: Any) -> Any:
        if frame.error_code:
            return fail(frame)
        connection._used_all_stream_ids, state.get_next_available_stream_id = True, refuse
        for stream, events in connection._events.items():
            if stream > frame.last_stream_id:
                events.append(not_begun)
        return [], []

    def refuse() -> int:
        # httpcore keeps the slot of a request that gets no stream.
        with contextlib.suppress(StopIteration):
            connection._max_streams_semaphore.release().send(None)
        raise NoAvailableStreamIDError

    async def receive_event(request: Any, stream_id: int) -> Any:
        event = await receive(request, stream_id)
        if event is not_begun:
            raise elsewhere
        return event

    async def wait_for_room(request: Any, stream_id: int) -> int:
        while not connection._events.get(stream_id):
            room = min(state.local_flow_control_window(stream_id), state.max_outbound_frame_size)
            if room:
                return int(room)
            await connection._receive_events(request, stream_id)
        raise _EarlyAnswerError

    async def send_until_answer(request: Any, stream_id: int) -> None:
        try:
            await send_body(request, stream_id)
        except (_EarlyAnswerError, ProtocolError):
            if not connection._events.get(stream_id):
                raise
            unsent.add(stream_id)

    async def close_stream(stream_id: int) -> None:
        if stream_id in unsent:
            unsent.discard(stream_id)
            with contextlib.suppress(ProtocolError):
                state.reset_stream(stream_id, ErrorCodes.CANCEL)
        await close(stream_id)

    frames[GoAwayFrame], connection._receive_stream_event = end, receive_event
    connection._wait_for_outgoing_flow, connection._send_request_body = wait_for_room, send_until_answer
    connection._response_closed = close_stream
