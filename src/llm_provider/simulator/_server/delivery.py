"""Sends answers, and the faults that occur while an answer is sent."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .._behaviour.deviations import Deviations
    from .._behaviour.faults import Fault
    from .._records.ledger import RunningLedger
    from .._records.recorded_requests import Record
    from ..formats.wire_format import Frame, Headers

__all__ = [
    "JSON_TYPE", "STREAM_TYPE", "BrokenConnectionError", "Client", "Exchange", "send_broken", "send_bytes",
    "send_stream",
]  # fmt: skip

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

JSON_TYPE = (b"content-type", b"application/json")
STREAM_TYPE = (b"content-type", b"text/event-stream; charset=utf-8")
FRAMES_BETWEEN_PAUSES = 64
FLUSH_SECONDS = 0.05


class BrokenConnectionError(Exception):
    """Leaves the application, upon which the HTTP server drops the connection in the middle of a body."""


class Client:
    """The client of a request, watched for its disconnect.

    The watch starts with the first wait, so that an answer without any wait does not pay for it.
    """

    __slots__ = ("_receive", "_watch")

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._watch: asyncio.Task[None] | None = None

    async def wait_for_disconnect(self, seconds: float | None) -> bool:
        """Wait for a number of seconds (None: for ever); True as soon as the client has disconnected."""
        watch = self._start_watch()
        done, _ = await asyncio.wait((watch,), timeout=seconds)
        return bool(done)

    async def wait_for(self, future: asyncio.Future[None]) -> bool:
        """Wait for a future; True if the client has disconnected before."""
        if not future.done():
            await asyncio.wait((future, self._start_watch()), return_when=asyncio.FIRST_COMPLETED)
        return not future.done()

    def _start_watch(self) -> asyncio.Task[None]:
        if self._watch is None:
            self._watch = asyncio.ensure_future(self._watch_client())
        return self._watch

    async def _watch_client(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass

    def forget(self) -> None:
        """Stop watching."""
        if self._watch is not None:
            self._watch.cancel()


class Exchange:
    """A request in progress. Its end is counted once, before the last byte of its answer is sent.

    A client that has its answer may read the ledger or send its next request, and the old request must not
    count as in progress then.
    """

    __slots__ = ("_ended", "_ledger", "_send", "client", "deviations", "headers", "identifier", "record")

    def __init__(
        self, record: Record, ledger: RunningLedger, receive: Receive, send: Send, client: Any
    ) -> None:
        self.record = record
        self.client = Client(receive)
        self.headers: Headers = []
        self.identifier = ""
        self.deviations: Deviations | None = None
        self._ledger = ledger
        self._send = send
        self._ended = False
        ledger.begin(record.provider, client)

    def identify(self, identifier: str) -> None:
        """Set the identifier of the request, in the headers of OpenAI and of Anthropic."""
        self.identifier = identifier
        name = identifier.encode()
        self.headers = [(b"x-request-id", name), (b"request-id", name)]

    async def start(self, status: int, headers: Headers) -> None:
        """Send status and headers."""
        headers = headers + self.headers
        if self.deviations is not None:
            status, headers = self.deviations.change_start(status, headers)
        self.record.status = status
        await self._send({"type": "http.response.start", "status": status, "headers": headers})

    async def more(self, body: bytes) -> None:
        """Send a piece of the body."""
        await self._send({"type": "http.response.body", "body": body, "more_body": True})

    async def last(self, body: bytes = b"") -> None:
        """Send the last piece of the body."""
        self.end()
        await self._send({"type": "http.response.body", "body": body, "more_body": False})

    def end(self, *, disconnected: bool = False) -> None:
        """Count the end of the request."""
        if not self._ended:
            self._ended = True
            self.record.disconnected = disconnected
            self._ledger.end(self.record.provider, self.record.status, disconnected=disconnected)


async def send_bytes(exchange: Exchange, status: int, body: bytes, content_type: tuple[bytes, bytes]) -> None:
    """Answer with a raw body."""
    await exchange.start(status, [content_type])
    await exchange.last(body)


async def send_broken(exchange: Exchange, body: bytes) -> None:
    """Send half of a body with the length of the whole body, then drop the connection."""
    await exchange.start(200, [JSON_TYPE, (b"content-length", b"%d" % len(body))])
    await exchange.more(body[: len(body) // 2])
    # The first half must have left the server before the connection is dropped, or nothing arrives.
    await asyncio.sleep(FLUSH_SECONDS)
    exchange.end()
    raise BrokenConnectionError


async def send_stream(
    exchange: Exchange,
    frames: Iterable[Frame],
    *,
    content_type: tuple[bytes, bytes],
    interval: float,
    fault: Fault,
    error: bytes,
    bill: Callable[[int | None], None],
) -> None:
    """Send a stream, with the fault ordered for it.

    Args:
        exchange: the request.
        frames: the whole stream.
        content_type: the header that names its form.
        interval: seconds between text chunks.
        fault: the fault; only its fields for streams are used.
        error: the event for ``fault.error_after``.
        bill: called once before the end is sent, with the output tokens sent so far; None for all of them.
    """
    await exchange.start(200, [content_type])
    break_at = -1
    chunks = _count_chunks_before_break(fault)
    if chunks is not None:
        frames = list(frames)
        break_at = _find_break(frames, chunks)
    sent = 0
    has_text = False
    for number, frame in enumerate(frames):
        if number == break_at and await _break(exchange, fault, error):
            bill(sent)
            await _finish_broken(exchange, fault)
            return
        if frame.tokens:
            if has_text and interval and await exchange.client.wait_for_disconnect(interval):
                bill(sent)
                exchange.end(disconnected=True)
                return
            has_text = True
            sent += frame.tokens
        await exchange.more(frame.data)
        if number % FRAMES_BETWEEN_PAUSES == FRAMES_BETWEEN_PAUSES - 1:
            await asyncio.sleep(0)
    bill(None)
    await exchange.last()


def _count_chunks_before_break(fault: Fault) -> int | None:
    chunks = (fault.cut_after, fault.abort_after, fault.error_after, fault.stall_after)
    return next((number for number in chunks if number is not None), None)


def _find_break(frames: Sequence[Frame], chunks: int) -> int:
    """Index of the frame before which the stream breaks: after this many text chunks, or after the last."""
    texts = [number for number, frame in enumerate(frames) if frame.tokens]
    if not texts:
        return min(1, len(frames) - 1)
    return texts[0] if chunks == 0 else texts[min(chunks, len(texts)) - 1] + 1


async def _break(exchange: Exchange, fault: Fault, error: bytes) -> bool:
    """Carry out the fault; False if the stream continues after it."""
    if fault.error_after is not None:
        await exchange.more(error)
    elif fault.stall_after is not None:
        return await exchange.client.wait_for_disconnect(fault.delay or None)
    return True


async def _finish_broken(exchange: Exchange, fault: Fault) -> None:
    if fault.stall_after is not None:
        exchange.end(disconnected=True)
    elif fault.abort_after is not None:
        await asyncio.sleep(FLUSH_SECONDS)
        exchange.end()
        raise BrokenConnectionError
    else:
        await exchange.last()
