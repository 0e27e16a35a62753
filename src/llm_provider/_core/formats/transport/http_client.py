"""The HTTP client over aiohttp: its session, and what aiohttp's connections lack."""

from __future__ import annotations

import asyncio
import functools
import io
import select
import socket
import ssl
import sys
import weakref
import zlib
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from types import ModuleType
from typing import Any

from ...pace.call_limits import most_connections
from ..protocol import Outgoing
from . import wire
from .environment import share_context

KEEPALIVE_SECONDS = 60.0
"""Seconds for which an idle connection is kept. The SDKs' 5 s cost new handshakes after every pause."""

_TCP = (("TCP_KEEPIDLE", 60), ("TCP_KEEPALIVE", 60), ("TCP_KEEPINTVL", 60), ("TCP_KEEPCNT", 5))
KEEPALIVE = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    # macOS has TCP_KEEPALIVE for TCP_KEEPIDLE.
    *((socket.IPPROTO_TCP, getattr(socket, name), value) for name, value in _TCP if hasattr(socket, name)),
)
"""Options of sockets, as the anthropic SDK sets them: after a minute without bytes a probe goes out. So no
router forgets a request whose model thinks for long, and a dead connection is noticed after six minutes."""

_LARGE_BYTES = 2**20
"""Above this size aiohttp warns of a body of bytes, as sending it in one piece blocks the event loop."""

_SMALL_BYTES = 2**15
"""A body of at most this size fits into the buffers of a connection, so writing it waits for nothing."""


_MOST_HEADER_BYTES, _MOST_HEADERS = 100_000, 1000
"""Bytes of a header, and headers of an answer, as many as h11 takes under httpx; aiohttp's own 8,190 and 128
are less than the policies and cookies that gateways write. The status would be lost with them."""

_PARAMETERS: dict[str, Any] = {
    # `wire` decodes: without the decoder of an encoding, aiohttp loses the status of an answer.
    "auto_decompress": False,
    "max_line_size": _MOST_HEADER_BYTES,
    "max_field_size": _MOST_HEADER_BYTES,
    "max_headers": _MOST_HEADERS,
}
_ACCEPTED = {"accept-encoding": wire.ACCEPTED_ENCODINGS}

_MOST_ADDRESSES = 64
"""Addresses whose request is kept. The path of some names the model."""


def body_of(content: bytes) -> Any:
    """A body in the form that aiohttp sends without a warning."""
    return content if len(content) <= _LARGE_BYTES else io.BytesIO(content)


def session(certificates: ssl.SSLContext | bool, kind: Any = None) -> Any:
    """An aiohttp session of a class, without cookies or a limit of connections, as `_core/pace` has one."""
    import aiohttp

    return (kind or aiohttp.ClientSession)(
        connector=_connector_class()(limit=0, ssl=certificates, keepalive_timeout=KEEPALIVE_SECONDS),
        cookie_jar=aiohttp.DummyCookieJar(),
        response_class=_answer_class(),
        headers=_ACCEPTED,
        **_PARAMETERS,
    )


@functools.cache
def _connector_class() -> Any:
    import aiohttp

    class Connector(aiohttp.TCPConnector):
        """Gives out no pooled connection on which anything has arrived since its last answer.

        That is its end, or an answer that nobody asked for, which aiohttp would take for the next answer. It
        notices either when its event loop reads from the socket, perhaps after the next request.
        """

        async def connect(self, *arguments: Any, **named: Any) -> Any:
            leaving = wire.departure.get()
            if not leaving.is_held:
                leaving.hold()
            for _ in range(_MOST_REPLACED):
                connection = await super().connect(*arguments, **named)
                if _reserve(connection):
                    leaving.leave()
                    return connection
                connection.close()
            raise aiohttp.ClientConnectionError("the server closes connections, or sends answers, unasked")

        async def _create_connection(self, *arguments: Any, **named: Any) -> Any:
            _connectors.add(self)
            await _make_room()
            return await super()._create_connection(*arguments, **named)

    return Connector


_connectors: weakref.WeakSet[Any] = weakref.WeakSet()


async def _make_room() -> None:
    """Close the connections that no request uses where this process may have no more."""
    try:
        pools = [(each._acquired, each._conns) for each in _connectors]  # noqa: SLF001  # no public way
    except AttributeError:  # a release without these names
        return
    idle = [protocol for _, pool in pools for kept in pool.values() for protocol, _ in kept]
    if idle and len(idle) + sum(len(acquired) for acquired, _ in pools) >= most_connections():
        for protocol in idle:
            protocol.abort()
        await asyncio.sleep(0)


_REQUEST_IDS = ("x-request-id", "request-id", "apim-request-id", "cf-ray")
"""Headers by which providers tell every answer from every other."""

_SHORTEST_ID = 16
"""Characters of a value that can do so. A proxy or a test's server may write "req_1" into all its answers.

A gateway may also send back the id that the request had, which a program may give to all its requests.
"""


@functools.cache
def _answer_class() -> Any:
    import aiohttp

    # By server: its first id, and "" once it has written another one.
    first_ids: dict[str | None, str] = {}

    class Answer(aiohttp.ClientResponse):
        """Refuses an answer that its connection has given before, to an earlier request.

        After the connector's look, only its headers tell it: they are never the same twice with an id. A
        server that has written one id into all its answers so far, as a replay may, has no such id.
        """

        async def start(self, connection: Any) -> aiohttp.ClientResponse:
            handler = connection.protocol
            await super().start(connection)
            headers, own = self.headers, self.request_info.headers
            for name in _REQUEST_IDS:
                identifier = headers.get(name, "")
                if len(identifier) < _SHORTEST_ID or own.get(name) == identifier:
                    continue
                server = self.url.host_port_subcomponent
                first = first_ids.setdefault(server, identifier)
                if first and first != identifier:
                    first_ids[server] = ""
                earlier = handler.__dict__.setdefault("headers_of_answers", deque(maxlen=_MOST_KNOWN))
                known = hash(self.raw_headers)
                if known in earlier and not first_ids[server]:
                    # The connection is in the pool again if the whole answer arrived at once.
                    handler.abort()
                    problem = "the server sent the answer to an earlier request again"
                    raise aiohttp.ClientConnectionError(problem)
                earlier.append(known)
                break
            return self

    return Answer


_MOST_KNOWN = 32
"""Answers of a connection that are told from new ones."""

_MOST_REPLACED = 9
"""Connections that are tried for one request."""


def _reserve(connection: Any) -> bool:
    """Whether a request may be sent over a connection. Until it is released, its bytes are the answer's."""
    handler, transport = connection.protocol, connection.transport
    if transport is not None:
        is_new = transport.get_protocol() is handler
        # A new connection may have received tickets of TLS.
        may_speak = is_new and transport.get_extra_info("ssl_object") is not None
        # What arrives at a pooled connection ends it, so only a new one may have received an answer.
        if is_new and (endpoint := transport.get_extra_info("socket")) is not None:
            for option in KEEPALIVE:
                endpoint.setsockopt(*option)
        if (is_new and handler.should_close) or (not may_speak and is_readable(transport)):
            return False
        transport.set_protocol(handler)
        connection.add_callback(lambda: transport.set_protocol(_Idle(handler)))
    return True


class _Idle(asyncio.Protocol):
    """The protocol of a connection while it is pooled: whatever arrives ends the connection."""

    def __init__(self, handler: Any) -> None:
        self._handler = handler

    def data_received(self, data: bytes) -> None:
        self._handler.abort()

    def connection_lost(self, exception: Exception | None) -> None:
        self._handler.connection_lost(exception)


def is_readable(transport: Any) -> bool:
    """Whether a connection has received bytes, or its end, and the event loop does not know it yet."""
    socket = transport.get_extra_info("socket")
    number = -1 if socket is None else socket.fileno()
    if number < 0 or sys.platform == "win32":  # which has no `poll`
        return False
    poll = select.poll()
    poll.register(number, select.POLLIN)
    return bool(poll.poll(0))


class AioHttp:
    """Sends over one aiohttp session, which the first request opens.

    httpx builds a request and a response for every call, which costs more than aiohttp's own work.
    """

    def __init__(
        self, library: ModuleType, _: str, most_bytes: int, trusted: Callable[[], ssl.SSLContext]
    ) -> None:
        self._library = library
        self._most_bytes = most_bytes
        self._trusted = trusted
        self._session: Any = None
        self._requests: dict[str, Any] = {}
        """An empty request for each address."""

    def open(self) -> None:
        """Load the certificates, which takes up to half a second, and open the session."""
        if self._session is None:
            self._session = session(share_context(self._trusted))

    async def post(self, url: str, headers: Mapping[str, str], body: bytes, outgoing: Outgoing) -> Any:
        if self._session is None:
            self.open()
        request = self._build_request(url, headers, body)
        answer = await _exchange(self._session.connector, request, outgoing.timeouts.connect)
        return _Received(answer, self._most_bytes)

    def _build_request(self, url: str, headers: Mapping[str, str], body: bytes) -> Any:
        if len(body) > _SMALL_BYTES:
            return self._make_request(url, headers=headers, data=body_of(body))
        if url not in self._requests:
            if len(self._requests) >= _MOST_ADDRESSES:
                self._requests.clear()
            self._requests[url] = self._make_request(url)
        return self._requests[url].repeat(headers, body)

    def _make_request(self, url: str, **more: Any) -> Any:
        from yarl import URL

        address, answers = URL(url, encoded=True), _answer_class()
        return _request_class()("POST", address, response_class=answers, session=self._session, **more)

    def build_response(self, received: Any) -> Any:
        """An answer that has been read as a response of httpx, which an SDK makes its error of."""
        coded = (b"content-encoding", b"content-length", b"transfer-encoding")
        answer = received.answer
        # As bytes: the library refuses a text that is not ASCII.
        headers = [(name, value) for name, value in answer.raw_headers if name.lower() not in coded]
        sent = self._library.Request("POST", str(answer.url))
        return self._library.Response(answer.status, headers=headers, content=received.content, request=sent)

    async def aclose(self) -> None:
        if self._session is not None:
            await self._session.close()


async def _exchange(connector: Any, request: Any, connect_seconds: float | None) -> Any:
    """What `session.request` does with a POST, without what this library never asks of aiohttp.

    Redirects, cookies, proxies, traces, timers and copies of the headers take 900 of a call's instructions.
    """
    try:
        connection = await connector.connect(request, traces=[], timeout=_timeout_of(connect_seconds))
        try:
            connection.protocol.set_response_params(read_until_eof=True, **_PARAMETERS)
            answer = await request.send(connection)
            try:
                await answer.start(connection)
            except BaseException:
                answer.close()
                raise
        except BaseException:
            connection.close()
            raise
    except OSError as error:
        import aiohttp

        if isinstance(error, aiohttp.ClientError):
            raise
        if isinstance(error, TimeoutError) and error.errno is None:
            raise aiohttp.ConnectionTimeoutError(f"Connection timeout to host {request.url}") from error
        raise aiohttp.ClientOSError(*error.args) from error
    return answer


@functools.cache
def _request_class() -> Any:
    import aiohttp
    from aiohttp.http import SERVER_SOFTWARE, StreamWriter
    from multidict import CIMultiDict

    added = {"accept": "*/*", "user-agent": SERVER_SOFTWARE, **_ACCEPTED}

    class Request(aiohttp.ClientRequest):
        """A request that can be repeated with a small body, which it writes at once with its headers.

        aiohttp reads the address anew for each request, wraps its body and, before Python 3.12, starts a task
        that writes it. Without that, and with `_Received.aread`, a call executes 1,400 instructions less.
        """

        content = b""

        @functools.cached_property
        def connection_key(self) -> Any:
            return super().connection_key

        def update_headers(self, headers: Any) -> None:
            headers = headers or {}
            host = {} if "host" in headers else {"Host": self.url.host_port_subcomponent}
            self.headers = CIMultiDict(host | added | headers)

        def repeat(self, headers: Mapping[str, str], content: bytes) -> Request:
            """A request to the same address with other headers and another body."""
            request = Request.__new__(Request)
            more = {"content": content, "connection_key": self.connection_key}
            vars(request).update(vars(self), **more, _body=None, response=None)
            request.update_headers({**headers, "content-length": str(len(content))})
            request.update_auth(None)
            return request

        async def send(self, connection: Any) -> aiohttp.ClientResponse:
            protocol, content = connection.protocol, self.content
            if not content or protocol.writing_paused or not (made := self._make_answer(protocol)):
                if content:
                    self.update_body_from_data(content)
                return await super().send(connection)
            answer, writer = made
            await writer.write_headers(f"{self.method} {self.url.raw_path_qs} HTTP/1.1", self.headers)
            await writer.write_eof(content)
            protocol.start_timeout()
            return answer

        def _make_answer(self, protocol: Any) -> tuple[aiohttp.ClientResponse, StreamWriter] | None:
            """The answer, which has not come, and what writes the request; None with an unknown release."""
            make: Any = self.response_class
            try:
                writer = StreamWriter(protocol, self.loop)
                answer = make(
                    self.method,
                    self.original_url,
                    writer=None,
                    continue100=None,
                    timer=None,
                    request_info=self.request_info,
                    traces=[],
                    loop=self.loop,
                    session=self.session,
                    stream_writer=writer,
                )
            except TypeError:
                return None
            return answer, writer

    return Request


@functools.lru_cache(maxsize=64)
def _timeout_of(seconds: float | None) -> Any:
    """The `ClientTimeout` of the opening of a connection. `_core/journey/attempt` times everything else."""
    import aiohttp

    return aiohttp.ClientTimeout(total=None, connect=seconds)


class _Received:
    """An answer of aiohttp with the names of httpx."""

    __slots__ = ("_most_bytes", "answer", "content", "headers", "status_code")

    def __init__(self, answer: Any, most_bytes: int) -> None:
        self.answer = answer
        self.headers = answer.headers
        self.status_code = answer.status
        self._most_bytes = most_bytes

    @property
    def is_read(self) -> bool:
        """Whether the end of the body has arrived. The libraries' responses have no such attribute."""
        return bool(self.answer.content.at_eof())

    async def aread(self) -> None:
        reader = self.answer.content
        if reader.is_eof() and self.status_code < 400 and "content-encoding" not in self.headers:
            # It has come whole with its headers, as most answers do.
            self.content = reader.read_nowait()
            if len(self.content) > self._most_bytes:
                raise wire.too_large(self._most_bytes)
        else:
            self.content = b"".join([piece async for piece in read_pieces(self.answer, self._most_bytes)])

    def aiter_bytes(self) -> AsyncIterator[bytes]:
        return read_pieces(self.answer, self._most_bytes)

    async def aclose(self) -> None:
        # Does nothing after the end of the body, when the connection is back in the pool.
        self.answer.close()


async def read_pieces(answer: Any, most: int) -> AsyncIterator[bytes]:
    """The body of an aiohttp response as it arrives; an `APIResponseValidationError` above `most` bytes.

    Of an answer that is an error it is the beginning, so that its status still says what failed.
    """
    receive, failed = functools.partial(_receive, answer.content), answer.status >= 400
    left = most = min(most, wire.MOST_OF_AN_ERROR) if failed else most
    decode = wire.decoder(answer.headers, failed=failed) if "content-encoding" in answer.headers else None
    try:
        while left >= 0 and (chunk := await receive()):
            for piece in (chunk,) if decode is None else decode(chunk):
                left -= len(piece)
                if left < 0:
                    break
                yield piece
    except Exception as error:
        answer.close()
        if isinstance(error, zlib.error):
            from aiohttp.http_exceptions import ContentEncodingError

            raise ContentEncodingError(f"the body cannot be decoded: {error}") from None
        if not failed:
            raise
    if left < 0:
        answer.close()
        if not failed:
            raise wire.too_large(most)
        yield piece[:left]


async def _receive(reader: Any) -> bytes:
    """`StreamReader.readany`, which takes 170 instructions for each chunk of HTTP that has arrived.

    The chunks become one before it takes them, so that it counts once.
    """
    try:
        buffer = reader._buffer  # noqa: SLF001  # no public way
        while not (buffer or reader.is_eof() or reader.exception()):
            await reader._wait("readany")  # noqa: SLF001
    except AttributeError:  # an answer without a body, or a release without these names
        buffer = ()
    if len(buffer) > 1:
        joined = b"".join(buffer)
        buffer.clear()
        buffer.append(joined)
    data: bytes = await reader.readany()
    return data


async def read(answer: Any) -> None:
    """Read the body of an answer, and close its connection if that fails."""
    try:
        await answer.aread()
    except BaseException:
        await answer.aclose()
        raise


def library_of(client_class: type) -> ModuleType:
    """The module `httpx` or `httpx2`: openai 2 is built on the first, openai 3 and anthropic on the other."""
    for kind in client_class.__mro__:
        root = kind.__module__.partition(".")[0]
        if root in ("httpx", "httpx2"):
            return sys.modules[root]
    raise TypeError(f"{client_class.__name__} is not built on httpx or httpx2")
