"""What httpx's connections lack: keepalive of TCP, answers after HTTP/2's orderly end, and early refusals.

All of it sets private attributes of httpcore, because there is no public way. A release without them works as
before.
"""
# ruff: noqa: SLF001  # see above

import asyncio
import contextlib
import functools
import socket
import sys
from typing import Any

_TCP = (("TCP_KEEPIDLE", 60), ("TCP_KEEPALIVE", 60), ("TCP_KEEPINTVL", 60), ("TCP_KEEPCNT", 5))
KEEPALIVE = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    # macOS has TCP_KEEPALIVE for TCP_KEEPIDLE.
    *((socket.IPPROTO_TCP, getattr(socket, name), value) for name, value in _TCP if hasattr(socket, name)),
)
"""Options of sockets, as the anthropic SDK sets them: after a minute without bytes a probe goes out. So no
router forgets a request whose model thinks for long, and a dead connection is noticed after six minutes."""

_LOOK_EVERY = 0.1
"""Seconds between two looks for an early answer, while the body of a request of HTTP/1.1 is sent."""


def prepare(client: Any) -> Any:
    """An httpx client whose pools make connections with what they lack."""
    for transport in (client._transport, *client._mounts.values()):
        with contextlib.suppress(AttributeError):
            _prepare_pool(transport._pool)
    return client


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

        @property
        def _connection(self) -> Any:
            return self.__dict__["_connection"]

        @_connection.setter
        def _connection(self, connection: Any) -> None:
            self.__dict__["_connection"] = connection
            with contextlib.suppress(AttributeError):
                if hasattr(connection, "_h2_state"):
                    _complete_http2(connection, connection._h2_state)
                elif hasattr(connection, "_h11_state"):
                    _complete_http1(connection, connection._network_stream)

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
