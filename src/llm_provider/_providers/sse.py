"""Server-sent events, as the SDKs' own servers send them: the JSON of each `data` field.

The rules are those of the HTML standard's event stream, less what no provider uses (ids, retry times). Names
of events are not needed: what they tell is in the JSON as well.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator
from typing import Any

import orjson

from .._errors import APIResponseValidationError

DONE = b"[DONE]"


class EventSplitter:
    r"""Cuts a stream of bytes, however they arrive, into the data of its events.

    >>> splitter = EventSplitter()
    >>> splitter.feed(b'data: {"a"')
    []
    >>> splitter.feed(b': 1}\n\ndata: [DONE]\n\n: a comment\n')
    [b'{"a": 1}', b'[DONE]']
    """

    __slots__ = ("_rest",)

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, chunk: bytes) -> list[bytes]:
        """Take the next bytes; returns the data of every event that is now complete."""
        buffer = self._rest + chunk if self._rest else chunk
        held = b""
        if b"\r" in buffer:
            # A line ends with any of three; of the pair, the second half may still be on its way.
            held = b"\r" if buffer.endswith(b"\r") else b""
            buffer = buffer.removesuffix(held).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        blocks = buffer.split(b"\n\n")
        self._rest = blocks.pop() + held
        found = []
        for block in blocks:
            if block.startswith(b"data: ") and b"\n" not in block:
                found.append(block[6:])
            elif data := [_value(line) for line in block.split(b"\n") if line.startswith(b"data:")]:
                found.append(b"\n".join(data))
        return found

    def end(self) -> list[bytes]:
        """The data of an event whose closing blank line never came: some servers leave it out."""
        return self.feed(b"\n\n")


def _value(line: bytes) -> bytes:
    return line[6:] if line.startswith(b"data: ") else line[5:]


async def events(chunks: AsyncIterator[bytes]) -> AsyncGenerator[Iterable[Any], None]:
    """The JSON of a stream's events, those that arrived together at once; ends after `[DONE]`.

    A body that is no stream at all is one event: some servers answer with the plain JSON of an error.

    Raises:
        APIResponseValidationError: the data of an event is not JSON.
    """
    splitter = EventSplitter()
    # What has come while there was no event yet.
    plain: bytes | None = b""
    async for chunk in chunks:
        found = splitter.feed(chunk)
        if plain is not None:
            plain = None if found else plain + chunk
        if found:
            done = DONE in found
            yield _decoded(found[: found.index(DONE)] if done else found)
            if done:
                return
    rest = [data for data in splitter.end() if data != DONE]
    if not rest and plain is not None and plain.lstrip().startswith(b"{"):
        rest = [plain]
    if rest:
        yield _decoded(rest)


def _decoded(found: list[bytes]) -> Iterator[Any]:
    """One after the other: hundreds may come together, and the collector would go through all their parts."""
    for data in found:
        if data:
            try:
                event = orjson.loads(data)
            except ValueError:
                raise APIResponseValidationError("an event of the stream is not JSON") from None
            yield event
