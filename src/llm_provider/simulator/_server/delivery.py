"""How answers are sent, and how they go wrong on the way."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from .._behaviour.faults import Fault
    from .._records.ledger import RunningLedger
    from .._records.recorded_requests import Record
    from ..formats.wire_format import Frame, Headers

__all__ = [
    "JSON_TYPE",
    "BrokenConnectionError",
    "Client",
    "Exchange",
    "send_broken",
    "send_bytes",
    "send_json",
    "send_stream",
]

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

JSON_TYPE = (b"content-type", b"application/json")
STREAM_TYPE = (b"content-type", b"text/event-stream; charset=utf-8")
FRAMES_BETWEEN_PAUSES = 64
FLUSH_SECONDS = 0.05


class BrokenConnectionError(Exception):
    """Raised out of the application so that the server drops the connection in the middle of a body."""


class Client:
    """The other end of a request: says whether it has left.

    Nothing is watched until the first wait, so that an answer that is sent at once pays nothing for it.
    """

    __slots__ = ("_receive", "_watch")

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._watch: asyncio.Task[None] | None = None

    async def left_within(self, seconds: float | None) -> bool:
        """Wait so many seconds (None: for ever); True as soon as the client has left."""
        if self._watch is None:
            self._watch = asyncio.ensure_future(self._until_it_leaves())
        done, _ = await asyncio.wait((self._watch,), timeout=seconds)
        return bool(done)

    async def _until_it_leaves(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass

    def forget(self) -> None:
        """Stop watching."""
        if self._watch is not None:
            self._watch.cancel()


class Exchange:
    """A request in progress: where its end is counted, once, and before the client can know of it.

    Counting comes before the last byte is sent because a client that has its answer may look into the ledger,
    or send the next request, which must not find the old one still in progress.
    """

    __slots__ = ("_ended", "_ledger", "_send", "client", "headers", "identifier", "record")

    def __init__(
        self, record: Record, ledger: RunningLedger, receive: Receive, send: Send, client: Any
    ) -> None:
        self.record = record
        self.client = Client(receive)
        self.headers: Headers = []
        self.identifier = ""
        self._ledger = ledger
        self._send = send
        self._ended = False
        ledger.begin(record.provider, client)

    def identify(self, identifier: str) -> None:
        """Name the request, under both the header OpenAI and the one Anthropic use."""
        self.identifier = identifier
        name = identifier.encode()
        self.headers = [(b"x-request-id", name), (b"request-id", name)]

    async def start(self, status: int, headers: Headers) -> None:
        """Send status and headers."""
        self.record.status = status
        await self._send({"type": "http.response.start", "status": status, "headers": headers + self.headers})

    async def more(self, body: bytes) -> None:
        """Send a piece of the body."""
        await self._send({"type": "http.response.body", "body": body, "more_body": True})

    async def last(self, body: bytes = b"") -> None:
        """Send the rest of the body."""
        self.end()
        await self._send({"type": "http.response.body", "body": body, "more_body": False})

    def end(self, *, disconnected: bool = False) -> None:
        """Count the request as done with."""
        if not self._ended:
            self._ended = True
            self.record.disconnected = disconnected
            self._ledger.end(self.record.provider, self.record.status, disconnected=disconnected)


async def send_json(exchange: Exchange, status: int, body: Mapping[str, Any]) -> None:
    """Answer with a JSON body."""
    await send_bytes(exchange, status, orjson.dumps(body), JSON_TYPE)


async def send_bytes(exchange: Exchange, status: int, body: bytes, content_type: tuple[bytes, bytes]) -> None:
    """Answer with a body as it is."""
    await exchange.start(status, [content_type])
    await exchange.last(body)


async def send_broken(exchange: Exchange, body: bytes) -> None:
    """Send half of a body whose whole length was announced, then drop the connection."""
    await exchange.start(200, [JSON_TYPE, (b"content-length", b"%d" % len(body))])
    await exchange.more(body[: len(body) // 2])
    # The half that was sent has to leave the server before the connection is dropped, or nothing arrives.
    await asyncio.sleep(FLUSH_SECONDS)
    exchange.end()
    raise BrokenConnectionError


async def send_stream(
    exchange: Exchange,
    frames: Iterable[Frame],
    *,
    interval: float,
    fault: Fault,
    error: bytes,
    bill: Callable[[int | None], None],
) -> None:
    """Send a stream, with the faults ordered for it.

    Args:
        exchange: the request.
        frames: the whole stream.
        interval: seconds between text chunks.
        fault: only what concerns streams is looked at.
        error: the event sent for ``fault.error_after``.
        bill: called once before the end is sent, with the output tokens sent so far, None if all were.
    """
    await exchange.start(200, [STREAM_TYPE])
    break_at = -1
    after = _chunks_before_break(fault)
    if after is not None:
        frames = list(frames)
        break_at = _place_after(frames, after)
    sent = 0
    begun = False
    for number, frame in enumerate(frames):
        if number == break_at and await _break(exchange, fault, error):
            bill(sent)
            await _finish_broken(exchange, fault)
            return
        if frame.tokens:
            if begun and interval and await exchange.client.left_within(interval):
                bill(sent)
                exchange.end(disconnected=True)
                return
            begun = True
            sent += frame.tokens
        await exchange.more(frame.data)
        if number % FRAMES_BETWEEN_PAUSES == FRAMES_BETWEEN_PAUSES - 1:
            await asyncio.sleep(0)
    bill(None)
    await exchange.last()


def _chunks_before_break(fault: Fault) -> int | None:
    for after in (fault.cut_after, fault.abort_after, fault.error_after, fault.stall_after):
        if after is not None:
            return after
    return None


def _place_after(frames: Sequence[Frame], chunks: int) -> int:
    """Index of the frame before which the stream breaks, after so many text chunks or the last of fewer."""
    texts = [number for number, frame in enumerate(frames) if frame.tokens]
    if not texts:
        return min(1, len(frames) - 1)
    return texts[0] if chunks == 0 else texts[min(chunks, len(texts)) - 1] + 1


async def _break(exchange: Exchange, fault: Fault, error: bytes) -> bool:
    """Do what the fault says; False if the stream goes on after it."""
    if fault.error_after is not None:
        await exchange.more(error)
    elif fault.stall_after is not None:
        return await exchange.client.left_within(fault.delay or None)
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
