"""The network between workers and simulator: an HTTP/1.1 proxy that breaks answers, and that can be cut.

Every answer of the simulator is read to its end, whatever becomes of the client: a provider bills an answer
that nobody waits for. So the proxy sees every request that is billed.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import re
import socket
import struct
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

from .faults import KINDS, Kind

HOST = "127.0.0.1"
NO_LINGER = struct.pack("ii", 1, 0)
LARGEST = 1 << 24
DRIP_SECONDS = 0.5

_TAG = re.compile(rb"\[(\w+-\d+-\d+)\]")
_LENGTH = re.compile(rb"(?im)^content-length: *(\d+)\r\n")
_IDENTIFIER = re.compile(rb"(?im)^x-request-id: *req_(\w+)")


@dataclass(slots=True, eq=False)
class Sent:
    """A request that reached the proxy."""

    tag: str
    kind: str
    """The name of its kind of fault; empty without one."""
    began: float
    """Monotonic seconds, as all times here."""
    ended: float | None = None
    """When the client had its answer, or was gone."""
    identifier: str = ""
    billed: bool = False
    finished: bool = True
    """Whether the simulator sent its answer to the end."""
    delivered: bool = False
    """Whether the client was still connected after the last byte."""


class Proxy:
    """A port in front of the simulator.

    Args:
        simulator_port: The port of the simulator.
        share: Fraction of the requests that meets each kind of fault.
        seed: Seed of the faults.
        kinds: The kinds of fault.
    """

    def __init__(
        self, simulator_port: int, share: float, seed: int = 1, kinds: Sequence[Kind] = KINDS
    ) -> None:
        if share * len(kinds) > 1:
            raise ValueError("the shares of the faults add up to more than all requests")
        self.sent: list[Sent] = []
        self.port = 0
        self._upstream = simulator_port
        self._share = share
        self._kinds = kinds
        self._random = random.Random(seed)
        self._server: asyncio.Server | None = None
        self._clients: set[asyncio.StreamWriter] = set()

    async def open(self) -> None:
        """Accept connections, on the same port as before."""
        self._server = await asyncio.start_server(self._client, HOST, self.port, limit=LARGEST)
        self.port = self._server.sockets[0].getsockname()[1]

    def cut(self) -> None:
        """Refuse connections from now on, and reset the open ones."""
        if self._server is not None:
            self._server.close()
        for writer in list(self._clients):
            _reset(writer)

    def in_flight(self, since: float) -> list[Sent]:
        """The requests in flight now, and those that ended after a time."""
        return [one for one in self.sent if one.ended is None or one.ended >= since]

    async def _client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._clients.add(writer)
        try:
            while not reader.at_eof():
                head = await reader.readuntil(b"\r\n\r\n")
                length = _LENGTH.search(head)
                body = await reader.readexactly(int(length[1]) if length else 0)
                await self._exchange(head, body, reader, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client has left, or the run is over
        finally:
            self._clients.discard(writer)
            writer.close()

    async def _exchange(
        self, head: bytes, body: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Forward a request and its answer, over a connection of its own to the simulator."""
        found = _TAG.search(body)
        tag = found[1].decode() if found else ""
        streamed = b"streamGenerateContent" in head or b'"stream":true' in body.replace(b" ", b"")
        place = int(self._random.random() / self._share) if self._share else len(self._kinds)
        kind = self._kinds[place] if place < len(self._kinds) else None
        sent = Sent(tag, kind.name if kind else "", time.monotonic())
        self.sent.append(sent)
        try:
            fault = (kind.streamed if streamed else kind.plain) if kind else None
            action = (kind.proxy_streamed if streamed else kind.proxy_plain) if kind else ""
            if action == "refuse":
                _reset(writer)
                return
            if fault is not None:
                await self._inject(fault, tag)
            source, target = await asyncio.open_connection(HOST, self._upstream, limit=LARGEST)
            target.write(head + body)
            await self._answer(sent, fault or {}, action, reader, writer, source)
            target.close()
        finally:
            sent.ended = time.monotonic()

    async def _answer(
        self,
        sent: Sent,
        fault: dict[str, Any],
        action: str,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        upstream: asyncio.StreamReader,
    ) -> None:
        head, whole, parts = b"", True, []
        broken = {"abort_after", "cut_after", "error_after", "empty_stream"} & fault.keys()
        try:
            head = await upstream.readuntil(b"\r\n\r\n")
            identifier = _IDENTIFIER.search(head)
            sent.identifier = identifier[1].decode() if identifier else ""
            sent.billed = b" 200 " in head.partition(b"\r\n")[0] and "body" not in fault
            sent.finished = not broken
            if not action:
                _write(writer, head)
            async for part in _body(head, upstream):
                if action:
                    parts.append(part)
                else:
                    _write(writer, part)
        except asyncio.IncompleteReadError:
            whole = False
        if action:
            await _act(action, head, b"".join(parts), reader, writer)
        elif not whole:
            _reset(writer)
        with contextlib.suppress(OSError):
            await writer.drain()
        sent.delivered = whole and not writer.is_closing() and not reader.at_eof()

    async def _inject(self, fault: dict[str, Any], tag: str) -> None:
        order = {
            "fault": fault, "provider": None, "times": 1, "match": f"[{tag}]", "key": None, "share": 1.0,
        }  # fmt: skip
        body = json.dumps(order).encode()
        reader, writer = await asyncio.open_connection(HOST, self._upstream)
        writer.write(
            b"POST /_simulator/inject HTTP/1.1\r\nhost: simulator\r\nconnection: close\r\n"
            b"content-length: %d\r\n\r\n%b" % (len(body), body)
        )
        status = await reader.readline()
        await reader.read()
        writer.close()
        if b" 200 " not in status:
            raise RuntimeError(f"the simulator refused a fault: {status!r}")


async def _body(head: bytes, upstream: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """The body of an answer as it was sent, with the framing of its chunks."""
    length = _LENGTH.search(head)
    if length is not None:
        yield await upstream.readexactly(int(length[1]))
    elif b"transfer-encoding: chunked" in head.lower():
        size = -1
        while size:
            line = await upstream.readuntil(b"\r\n")
            size = int(line.partition(b";")[0], 16)
            yield line + await upstream.readexactly(size + 2)


async def _act(
    action: str, head: bytes, body: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Break a whole answer on its way to the client."""
    if action == "head":
        _write(writer, head[: len(head) // 2])
        await asyncio.sleep(0.05)
        _reset(writer)
    elif action == "cut":
        half = body[: len(body) // 2]
        _write(writer, _LENGTH.sub(b"content-length: %d\r\n" % len(half), head) + half)
    elif action == "drip":
        _write(writer, head)
        for place in range(len(body)):
            if writer.is_closing() or reader.at_eof():
                return
            _write(writer, body[place : place + 1])
            await asyncio.sleep(DRIP_SECONDS)
    else:
        # Nothing more comes on this connection until the client leaves.
        await reader.read(1)


def _write(writer: asyncio.StreamWriter, data: bytes) -> None:
    if not writer.is_closing():
        writer.write(data)


def _reset(writer: asyncio.StreamWriter) -> None:
    if not writer.is_closing():
        connection = writer.get_extra_info("socket")
        with contextlib.suppress(OSError):
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGER)
        writer.transport.abort()
