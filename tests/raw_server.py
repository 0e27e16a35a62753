"""A server that breaks HTTP on purpose, below what any HTTP library would let through."""

import asyncio
import contextlib
import json
import socket
import struct
import zlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from loop_support import LoopServer

Behaviour = Callable[[asyncio.StreamWriter], Awaitable[None]]

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
DRIP_SECONDS = 0.05


def reset(writer: asyncio.StreamWriter) -> None:
    """End the connection with RST instead of FIN."""
    linger_for_no_time = struct.pack("ii", 1, 0)
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger_for_no_time)
    writer.transport.abort()


async def reset_before_headers(writer: asyncio.StreamWriter) -> None:
    reset(writer)


async def close_before_headers(writer: asyncio.StreamWriter) -> None:
    writer.close()


async def _reset_after(writer: asyncio.StreamWriter, sent: bytes) -> None:
    writer.write(sent)
    await writer.drain()
    # RST overtakes what the client has not read yet.
    await asyncio.sleep(DRIP_SECONDS)
    reset(writer)


async def reset_mid_headers(writer: asyncio.StreamWriter) -> None:
    await _reset_after(writer, HEAD + b"content-le")


async def reset_mid_body(writer: asyncio.StreamWriter) -> None:
    await _reset_after(writer, HEAD + b'content-length: 1000\r\n\r\n{"id": "half')


async def reset_mid_chunk(writer: asyncio.StreamWriter) -> None:
    await _reset_after(writer, HEAD + b'transfer-encoding: chunked\r\n\r\n100\r\n{"id": "half')


async def close_mid_body(writer: asyncio.StreamWriter) -> None:
    writer.write(HEAD + b'content-length: 1000\r\n\r\n{"id": "half')
    writer.close()


async def garbage_chunk_size(writer: asyncio.StreamWriter) -> None:
    writer.write(HEAD + b"transfer-encoding: chunked\r\n\r\nnot hexadecimal\r\n{}\r\n0\r\n\r\n")
    writer.close()


async def garbage_encoding(writer: asyncio.StreamWriter) -> None:
    writer.write(HEAD + b"content-encoding: gzip\r\ncontent-length: 9\r\n\r\nnot gzip!")
    writer.close()


async def garbage_status_line(writer: asyncio.StreamWriter) -> None:
    writer.write(b"SSH-2.0-OpenSSH_9.9\r\n\r\n")
    writer.close()


async def huge_header(writer: asyncio.StreamWriter) -> None:
    writer.write(HEAD + b"x-huge: " + b"x" * 300_000 + b"\r\ncontent-length: 2\r\n\r\n{}")
    with contextlib.suppress(ConnectionError):
        await writer.drain()
    writer.close()


def answering(
    body: bytes, *, status: int = 200, headers: Mapping[str, str] | None = None, more: bytes = b""
) -> Behaviour:
    """A whole answer with these bytes. `more` are further header lines, each with its end."""
    fields = {"content-type": "application/json", **(headers or {}), "content-length": str(len(body))}
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())

    async def behaviour(writer: asyncio.StreamWriter) -> None:
        writer.write(f"HTTP/1.1 {status} Said\r\n{lines}".encode() + more + b"\r\n" + body)
        with contextlib.suppress(ConnectionError):
            await writer.drain()

    return behaviour


async def stall_mid_body(writer: asyncio.StreamWriter) -> None:
    """Half an answer, and then nothing more."""
    writer.write(HEAD + b'content-length: 1000\r\n\r\n{"id": "half')
    # The loop's timer keeps the task alive; one that waits for an event that nobody holds may be collected.
    await asyncio.sleep(3600)


async def slow_drip(writer: asyncio.StreamWriter) -> None:
    """A byte now and then, for ever: never a pause that is long enough for a timeout between reads."""
    writer.write(HEAD + b"content-length: 100000\r\n\r\n")
    with contextlib.suppress(ConnectionError):
        while not writer.is_closing():
            writer.write(b" ")
            await writer.drain()
            await asyncio.sleep(DRIP_SECONDS)


def expanding(head: bytes, block: bytes, times: int, *, status: int = 200) -> Behaviour:
    """An answer that is `head`, and then `block` so many times. On the wire it is a thousandth of that."""
    encoder = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    # What is compressed between two full flushes does not depend on what came before, and can be repeated.
    first = encoder.compress(head) + encoder.flush(zlib.Z_FULL_FLUSH)
    repeated = encoder.compress(block) + encoder.flush(zlib.Z_FULL_FLUSH)
    body = b"\x1f\x8b\x08" + bytes(7) + first + repeated * times + encoder.flush() + bytes(8)

    async def behaviour(writer: asyncio.StreamWriter) -> None:
        fields = b"content-type: application/json\r\ncontent-encoding: gzip\r\ncontent-length: %d" % len(body)
        writer.write(b"HTTP/1.1 %d OK\r\n%b\r\n\r\n%b" % (status, fields, body))
        with contextlib.suppress(ConnectionError):
            await writer.drain()

    return behaviour


class RawServer(LoopServer):
    """Answers every request with one behaviour. `requests` counts the requests that arrived whole."""

    def __init__(self, behaviour: Behaviour) -> None:
        super().__init__()
        self.requests = 0
        self._behaviour = behaviour

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            # A server that ends a connection without a word races with the next request on it.
            while not writer.is_closing():
                head = await reader.readuntil(b"\r\n\r\n")
                await reader.readexactly(_content_length(head))
                self.requests += 1
                await self._behaviour(writer)
        writer.close()


def _content_length(head: bytes) -> int:
    for line in head.lower().split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name == b"content-length":
            return int(value)
    return 0


def streaming(events: list[Any], *, done: bool = True) -> Behaviour:
    """A stream of server-sent events, with or without `[DONE]` at its end."""
    body = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)
    return answering(
        body + (b"data: [DONE]\n\n" if done else b""), headers={"content-type": "text/event-stream"}
    )
