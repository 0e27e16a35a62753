"""The connections of a simulated process: asyncio's transports, whose other end is in the world."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any

from .event_loop import SimulatedLoop

Send = Callable[..., None]
"""Tells the world something: the kind of event, the number of the connection, and what belongs to it."""


class Endpoint:
    """What libraries ask of the socket below a transport. It has no descriptor."""

    family, type, proto = socket.AF_INET, socket.SOCK_STREAM, 6

    def __init__(self, own: tuple[str, int], peer: tuple[str, int]) -> None:
        self._own, self._peer = own, peer

    def getsockname(self) -> tuple[str, int]:
        return self._own

    def getpeername(self) -> tuple[str, int]:
        return self._peer

    def setsockopt(self, *_: Any) -> None:
        return

    def fileno(self) -> int:
        return -1


class Connection(asyncio.Transport):
    """A TCP connection to a server of the world."""

    def __init__(self, number: int, loop: SimulatedLoop, send: Send, address: tuple[str, int]) -> None:
        own = ("127.0.0.1", number)
        super().__init__({"peername": address, "sockname": own, "socket": Endpoint(own, address)})
        self.number = number
        self.opened: asyncio.Future[None] = loop.create_future()
        self._loop = loop
        self._send = send
        self._protocol: Any = None
        self._is_closing = False
        self._is_paused = False
        self._held_back: list[tuple[str, Any]] = []
        send("open", number, address[1])

    def arrive(self, kind: str, content: Any = None) -> None:
        """Take an event of the world; it waits while the protocol has paused reading."""
        self._loop.deliver(Connection._take, self, kind, content)

    def _take(self, kind: str, content: Any) -> None:
        if kind == "connected":
            if not self.opened.done():
                self.opened.set_result(None)
        elif kind == "refused":
            if not self.opened.done():
                self.opened.set_exception(ConnectionRefusedError(111, "refused"))
        elif (self._is_paused and kind == "data") or (self._is_paused and self._held_back):
            self._held_back.append((kind, content))
        elif self._protocol is not None and not self._is_closing:
            self._hand_over(kind, content)

    def _hand_over(self, kind: str, content: Any) -> None:
        if kind == "data":
            self._protocol.data_received(content)
        elif kind == "end":
            if not self._protocol.eof_received():
                self.close()
        else:
            self._lose(ConnectionResetError(104, "reset"))

    def _lose(self, error: Exception | None) -> None:
        if not self._is_closing:
            self._is_closing = True
            self._loop.call_soon(self._protocol.connection_lost, error)

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = protocol

    def get_protocol(self) -> asyncio.BaseProtocol:
        protocol: asyncio.BaseProtocol = self._protocol
        return protocol

    def is_closing(self) -> bool:
        return self._is_closing

    def is_reading(self) -> bool:
        return not self._is_paused and not self._is_closing

    def pause_reading(self) -> None:
        self._is_paused = True

    def resume_reading(self) -> None:
        self._is_paused = False
        held, self._held_back = self._held_back, []
        for kind, content in held:
            self.arrive(kind, content)

    def write(self, data: Any) -> None:
        if not self._is_closing:
            self._send("data", self.number, bytes(data))

    def can_write_eof(self) -> bool:
        return False

    def get_write_buffer_size(self) -> int:
        return 0

    def get_write_buffer_limits(self) -> tuple[int, int]:
        return (0, 2**16)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        return

    def close(self) -> None:
        if not self._is_closing:
            self._send("close", self.number)
            self._lose(None)

    def abort(self) -> None:
        self.close()


class ClientLoop(SimulatedLoop):
    """The event loop of a simulated process, whose connections end in the world."""

    numbers = 0
    send: Send
    by_number: dict[int, Connection]

    def __init__(self) -> None:
        super().__init__()
        self._by_socket: dict[int, Connection] = {}

    async def _open(self, host: str, port: int) -> Connection:
        kind = type(self)
        kind.numbers += 1
        connection = Connection(kind.numbers, self, kind.send, (host, port))
        kind.by_number[connection.number] = connection
        await connection.opened
        return connection

    async def sock_connect(self, sock: socket.socket, address: Any) -> None:
        self._by_socket[sock.fileno()] = await self._open(*address[:2])

    async def create_connection(
        self, protocol_factory: Callable[[], Any], host: Any = None, port: Any = None, **options: Any
    ) -> tuple[Connection, Any]:
        sock = options.get("sock")
        if options.get("ssl"):
            raise ValueError("the simulated network has no TLS")
        if sock is None:
            connection = await self._open(host, port)
        else:
            connection = self._by_socket.pop(sock.fileno())
            sock.close()
        protocol = protocol_factory()
        connection.set_protocol(protocol)
        protocol.connection_made(connection)
        return connection, protocol
