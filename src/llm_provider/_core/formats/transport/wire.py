"""Whether a request has left, the bodies of answers up to a number of decoded bytes, and their events.

A compressed body of 1 MB can decode to 1 GB, and the HTTP libraries decode each piece of a body completely.
The decoder here works in small pieces, so that a reader can stop at its limit. `http_client` reads answers of
aiohttp, which has left them encoded, and `limit_httpx` makes a response of httpx or httpx2 decode in pieces.
The status of a failure was read before its body, so a body that is cut or cannot be decoded only loses the
message.

The rules of events are the HTML standard's, without ids and retry times, which no provider uses. The names of
events are not read, as the JSON repeats them.
"""

import codecs
import functools
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from functools import partial
from types import ModuleType
from typing import Any

from ...errors import APIResponseValidationError
from ...runtime.json_pieces import (
    LARGE,
    JSONLimitError,
    check_size,
    find_reader,
    loads,
    read_large,
    takes_long,
)
from ...runtime.threads import result_in_thread

ACCEPTED_ENCODINGS = "gzip, deflate"
"""The encodings that are decoded."""

_PIECE = 2**18
"""Bytes that are decoded at a time."""

_WINDOWS = {"gzip": zlib.MAX_WBITS | 16, "x-gzip": zlib.MAX_WBITS | 16, "deflate": zlib.MAX_WBITS}

_NOT_ACCEPTED = frozenset({"br", "zstd", "compress", "x-compress", "dcb", "dcz"})
"""The other encodings of IANA's registry that compress. Some servers and proxies send them unasked."""

MOST_OF_AN_ERROR = 1_000_000
"""Bytes of the answer to a request that failed. The rest is not read, and the SDKs read these at once."""


def too_large(most: int) -> APIResponseValidationError:
    """The error for an answer of more than `most` bytes. The next answer would be as large, and be billed."""
    return APIResponseValidationError(
        f"the answer has more than {most:,} bytes, and was not read to its end: "
        "allow more with Client(max_response_bytes=...)",
        retryable=False,
    )


async def check_json(body: bytes) -> None:
    """Raise an `APIResponseValidationError` if a body is too much for an SDK, which reads it at once."""
    try:
        if takes_long(body):
            await result_in_thread(partial(check_size, body), "llm_provider-check")
    except JSONLimitError as error:
        raise APIResponseValidationError(f"the answer cannot be read: {error}", retryable=False) from None


def limit_httpx(library: ModuleType, response: Any, most: int) -> None:
    """Make reading a response of httpx or httpx2 raise after `most` bytes, decoded where accepted."""
    failed = response.status_code >= 400
    decode = decoder(response.headers, failed=failed) or (lambda chunk: (chunk,))
    if "content-encoding" in response.headers:
        # The library would decode what this stream has decoded.
        del response.headers["content-encoding"]
    network = response.extensions.get("network_stream")
    most = min(most, MOST_OF_AN_ERROR) if failed else most
    response.stream = _stream_class(library)(response.stream, decode, most, network, failed)


def decoder(headers: Any, *, failed: bool) -> Callable[[bytes], Iterable[bytes]] | None:
    """Decodes the next part of a body; None for a body that is not encoded.

    Other bytes than the headers promise end a success. The bytes of a failure are kept if they may be plain
    text. Text under the name of an encoding that was not accepted is text: a proxy has decoded it.
    """
    if "content-encoding" not in headers:
        return None
    # The last encoding was applied last.
    names = [name.strip() for name in reversed(headers["content-encoding"].lower().split(","))]
    inflaters = [_Inflater(_WINDOWS[name]) for name in names if name in _WINDOWS]
    is_known = not failed or set(names) <= {*_WINDOWS, "", "identity"}
    unasked = () if failed else _NOT_ACCEPTED.intersection(names)
    if not inflaters and is_known and not unasked:
        return None

    def decode(chunk: bytes) -> Iterator[bytes]:
        nonlocal is_known, unasked
        try:
            if is_known:
                for piece in _inflate(chunk, inflaters):
                    if unasked and piece:
                        codecs.getincrementaldecoder("utf-8")().decode(piece)
                        unasked = ()
                    yield piece
        except (zlib.error, UnicodeDecodeError):
            if unasked:
                raise APIResponseValidationError(
                    f"the answer is encoded as {', '.join(unasked)}, for which no request asks: "
                    "switch that off in the server, or in the proxy before it",
                    retryable=False,
                ) from None
            if not failed:
                raise
            is_known = False
        if not is_known and chunk.isascii():
            yield chunk

    return decode


@functools.cache
def _stream_class(library: ModuleType) -> Any:
    class LimitedStream(library.AsyncByteStream):  # type: ignore[name-defined,misc]  # known at run time only
        def __init__(self, raw: Any, decode: Any, most: int, network: Any, failed: bool) -> None:
            self._raw, self._decode, self._most = raw, decode, most
            self._network, self._failed = network, failed

        async def __aiter__(self) -> AsyncIterator[bytes]:
            left = self._most
            try:
                async for chunk in self._raw:
                    for piece in self._decode(chunk):
                        left -= len(piece)
                        if left < 0:
                            await self.aclose()
                            if not self._failed:
                                raise too_large(self._most)
                            yield piece[:left]
                            return
                        yield piece
            except zlib.error as error:
                raise library.DecodingError(str(error)) from error
            except library.TransportError:
                if not self._failed:
                    raise

        async def aclose(self) -> None:
            state: Any = self._raw
            # No public name of the libraries tells whether more than the answer has arrived.
            for name in ("_stream", "_httpcore_stream", "_stream", "_connection", "_h11_state"):
                state = getattr(state, name, None)
            if state is not None and state.trailing_data[0]:
                # The library would take it for the beginning of the next answer. A connection whose stream is
                # closed does not return to its pool.
                await self._network.aclose()
            await self._raw.aclose()

    return LimitedStream


class _Inflater:
    """Decodes gzip or deflate, at most `_PIECE` bytes at a time."""

    def __init__(self, window: int) -> None:
        self._window = window
        self._decoder = zlib.decompressobj(window)
        self._begun = False

    def pieces(self, data: bytes) -> Iterator[bytes]:
        """The decoded bytes of the next part of the body."""
        if not self._begun and data:
            self._begun = True
            # Some servers send deflate without the header of zlib, whose lowest four bits are 8.
            if self._window == zlib.MAX_WBITS and data[0] & 0xF != 8:
                self._decoder = zlib.decompressobj(-zlib.MAX_WBITS)
        while not self._decoder.eof:
            piece = self._decoder.decompress(data, _PIECE)
            if piece:
                yield piece
            if len(piece) < _PIECE:
                return
            data = self._decoder.unconsumed_tail


def _inflate(data: bytes, inflaters: Sequence[_Inflater]) -> Iterator[bytes]:
    if not inflaters:
        yield data
        return
    for piece in inflaters[0].pieces(data):
        yield from _inflate(piece, inflaters[1:])


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
        if len(self._rest) > _LONG and not (b"\n" in chunk or b"\r" in chunk or self._rest.endswith(b"\r")):
            # The chunk continues a line, so no event ends in it.
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
            if b"\n" not in b"".join(events):
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

    def end(self) -> list[bytes]:
        """The data of a last event without its closing blank line, which some servers leave out."""
        return self.feed(b"\n\n")


async def events(
    chunks: AsyncIterator[bytes], *, mark_end: bool = False
) -> AsyncGenerator[Iterable[Any], None]:
    """The JSON of a stream's events, in batches that arrived together; ends after `[DONE]`.

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
    if max(map(len, received), default=0) < LARGE:
        return _decode(received)
    return await result_in_thread(lambda: read_large(lambda: list(_decode(received))), "llm_provider-events")


def _decode(received: list[bytes]) -> Iterator[Any]:
    """Decodes one event after the other: the garbage collector would traverse hundreds that exist at once."""
    try:
        read = find_reader(received) if len(received) > 1 else loads
        for data in received:
            if data:
                yield read(data)
    except JSONLimitError as error:
        problem = f"an event of the stream cannot be read: {error}"
        raise APIResponseValidationError(problem, retryable=False) from None
    except ValueError:
        raise APIResponseValidationError("an event of the stream is not JSON") from None


class Departure:
    """Counts the requests of one call that have left, one after the other.

    A request that is held, as it waits for a token, a name or a connection, costs nothing and does not count.
    """

    attempts: int = 0
    under_way: int = 0
    is_held: bool = False
    """Whether the last request is held."""
    is_reported: bool = False
    """Whether an error has told of the last request, which was under way then. It counts no longer."""

    def start(self) -> None:
        """Begin a request, which is held at first."""
        self.is_held, self.is_reported = True, False

    def hold(self) -> None:
        if not self.is_held:
            self.is_held = True
            if not self.is_reported:
                self.attempts -= 1
                self.under_way -= 1

    def leave(self) -> None:
        if self.is_held:
            self.is_held = False
            if not self.is_reported:
                self.attempts += 1
                self.under_way += 1


# A request outside of calls departs, too.
departure: ContextVar[Departure] = ContextVar("departure", default=Departure())  # noqa: B039  # nobody reads it
"""The requests of the call whose request the present task sends."""
