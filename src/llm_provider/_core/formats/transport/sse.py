"""Server-sent events: splits a stream of bytes into events and decodes the JSON of each `data` field.

The rules are the HTML standard's for event streams, without ids and retry times, which no provider uses.
The names of events are not read, as the JSON repeats them.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Mapping
from typing import Any

import orjson

from ...errors import APIResponseValidationError
from ...runtime.json_pieces import JSON_CONTENT, LARGE, SHORT, JSONLimitError, loads, read_large
from ...runtime.threads import result_in_thread

DONE = b"[DONE]"

END: Mapping[str, Any] = {"type": "[DONE]"}
"""The event in place of `[DONE]`."""

BYTE_ORDER_MARK = b"\xef\xbb\xbf"

_FIELDS = (b":", b"event:", b"id:", b"retry:", b"data", b"\n", b"\r")
"""What an event stream without an event may begin with, as one of comments that hold a connection."""

_LONG = 2**20
"""Bytes of an incomplete event above which its pieces are joined only at its end. Joining each piece at once
takes quadratic time."""


class WholeReply(dict[str, Any]):
    """The reply to a request for a stream, from a server that has answered with the whole of it."""


class EventSplitter:
    """Splits a stream of bytes, in chunks of any size, into the data of its events."""

    __slots__ = ("_begun", "_pieces", "_rest")

    def __init__(self) -> None:
        self._rest = b""
        self._pieces: list[bytes] = []
        self._begun = False

    def feed(self, chunk: bytes) -> list[bytes]:
        """Take the next chunk; returns the data of every event that is now complete."""
        if len(self._rest) > _LONG and self._is_within(chunk):
            self._pieces.append(chunk)
            return []
        if self._pieces:
            self._rest = b"".join((self._rest, *self._pieces))
            self._pieces.clear()
        buffer = self._rest + chunk if self._rest else chunk
        if not self._begun:
            if len(buffer) < 3 and BYTE_ORDER_MARK.startswith(buffer):
                self._rest = buffer
                return []
            self._begun = True
            buffer = buffer.removeprefix(BYTE_ORDER_MARK)
        held = b""
        if b"\r" in buffer:
            # A line ends with \r, \n or \r\n. After an \r at the end of the chunk, the \n may follow in the
            # next.
            held = b"\r" if buffer.endswith(b"\r") else b""
            buffer = buffer.removesuffix(held).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        complete, _, rest = buffer.rpartition(b"\n\n")
        self._rest = rest + held
        if complete.startswith(b"data: "):
            # In most streams, each event is one line. Splitting them at once saves 3 % of a stream.
            events = complete[6:].split(b"\n\ndata: ")
            if complete.count(b"\n") == 2 * len(events) - 2:
                return events
        events = []
        for block in complete.split(b"\n\n"):
            # Some servers write a name above the line. Taking both as a whole saves 5 % of a stream.
            if block.startswith(b"event: ") and block.count(b"\n") == 1 and b"\ndata: " in block:
                events.append(block[block.index(b"\n") + 7 :])
            elif block:
                data = [line[5:].removeprefix(b" ") for line in block.split(b"\n") if line[:5] == b"data:"]
                events += [b"\n".join(data)] if data else ()
        return events

    def _is_within(self, chunk: bytes) -> bool:
        """Whether a chunk continues a line, so that no event ends in it."""
        return b"\n" not in chunk and b"\r" not in chunk and not self._rest.endswith(b"\r")

    def end(self) -> list[bytes]:
        """The data of a last event without its closing blank line, which some servers leave out."""
        return self.feed(b"\n\n")


async def events(
    chunks: AsyncIterator[bytes], *, mark_end: bool = False
) -> AsyncGenerator[Iterable[Any], None]:
    """The JSON of a stream's events, in batches of those that arrived together; ends after `[DONE]`.

    With `mark_end`, `END` is the last event of a stream that ended with `[DONE]`.
    A body that is not an event stream but a JSON object becomes one event, a `WholeReply`. The entries of a
    JSON list are events, as Gemini sends them.
    """
    splitter = EventSplitter()
    # The bytes so far, until the first event, if they may be JSON; and the beginning of any other body.
    plain: bytearray | None = bytearray()
    beginning = b""
    async for chunk in chunks:
        received = splitter.feed(chunk)
        if plain is not None:
            plain += chunk
            # Whether the body may be a JSON object or a list.
            first = bytes(plain[:100]).lstrip(BYTE_ORDER_MARK).lstrip()[:1]
            if received or first not in (b"", b"{", b"["):
                beginning = bytes(plain[:60])
                plain = None
        if received:
            beginning = b""
            end = _end_of(received)
            yield await _decode_batch(received[:end])
            if end is not None:
                if mark_end:
                    yield (END,)
                return
    if plain is not None and plain and not plain.isspace():
        # It has a copy of the bytes.
        del splitter
        (whole,) = await _decode_batch([bytes(plain).removeprefix(BYTE_ORDER_MARK)])
        yield (WholeReply(whole),) if isinstance(whole, dict) else whole
    elif last := splitter.end():
        end = _end_of(last)
        yield await _decode_batch(last[:end])
        if mark_end and end is not None:
            yield (END,)
    elif beginning and not beginning.startswith(_FIELDS):
        raise APIResponseValidationError(f"the answer is not JSON: {beginning.decode('utf-8', 'replace')!r}")


def _end_of(received: list[bytes]) -> int | None:
    """The place of `[DONE]`, to which some servers add blanks; None where it has not come."""
    text = b"\n".join(received)
    if DONE not in text:
        return None
    if received[-1] == DONE and text.count(DONE) == 1:
        return len(received) - 1
    return next((index for index, data in enumerate(received) if data.strip() == DONE), None)


async def _decode_batch(received: list[bytes]) -> Iterable[Any]:
    """The JSON of some events, read in a thread where one of them is large."""
    if all(len(data) < LARGE for data in received):
        return _decode(received)
    return await result_in_thread(lambda: read_large(lambda: list(_decode(received))), "llm_provider-events")


def _decode(received: list[bytes]) -> Iterator[Any]:
    """Decodes one event after the other: the garbage collector would traverse hundreds that exist at once."""
    try:
        for data in received:
            if data:
                # What `loads` does for nearly every event.
                try:
                    plain = len(data) < SHORT and b'"args"' not in data and not JSON_CONTENT.search(data)
                    event = orjson.loads(data) if plain else loads(data)
                except orjson.JSONDecodeError:
                    event = loads(data)
                yield event
    except JSONLimitError as error:
        problem = f"an event of the stream cannot be read: {error}"
        raise APIResponseValidationError(problem, retryable=False) from None
    except ValueError:
        raise APIResponseValidationError("an event of the stream is not JSON") from None
