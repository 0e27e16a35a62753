"""Reads the bodies of answers up to a number of decoded bytes.

A compressed body of 1 MB can decode to 1 GB, and the HTTP libraries decode each piece of a body completely.
The readers here decode in small pieces and stop at the limit. `of_aiohttp` and `chunks_of_aiohttp` read
answers of aiohttp, which decodes in pieces unless it is asked for the whole body. `limit_httpx` makes a
response of httpx or httpx2 decode in pieces.
"""

import functools
import zlib
from collections.abc import AsyncIterator, Iterator, Sequence
from types import ModuleType
from typing import Any

from ..._errors import APIResponseValidationError

ACCEPTED_ENCODINGS = "gzip, deflate"
"""The encodings that `limit_httpx` decodes."""

_PIECE = 2**18
"""Bytes that are decoded at a time."""

_WINDOWS = {"gzip": zlib.MAX_WBITS | 16, "x-gzip": zlib.MAX_WBITS | 16, "deflate": zlib.MAX_WBITS}


MOST_OF_AN_ERROR = 1_000_000
"""Bytes of the answer to a request that failed. The rest is not read, and the SDKs read these at once."""


def too_large(most: int) -> APIResponseValidationError:
    """The error for an answer of more than `most` bytes. The next answer would be as large, and be billed."""
    return APIResponseValidationError(
        f"the answer has more than {most:,} bytes, and was not read to its end: "
        "allow more with Client(max_response_bytes=...)",
        retryable=False,
    )


async def of_aiohttp(answer: Any, most: int) -> bytes:
    """The whole body of an aiohttp response; an `APIResponseValidationError` above `most` bytes.

    Of an answer that is an error it is the beginning, so that its status still says what failed.
    """
    content, failed = answer.content, answer.status >= 400
    most = min(most, MOST_OF_AN_ERROR) if failed else most
    body: bytes = await content.readany()
    if len(body) <= most and content.at_eof():
        return body
    pieces, left = [body], most - len(body)
    while left >= 0:
        piece = await content.readany()
        if not piece:
            return b"".join(pieces)
        pieces.append(piece)
        left -= len(piece)
    answer.close()
    if failed:
        return b"".join(pieces)[:most]
    raise too_large(most)


async def chunks_of_aiohttp(answer: Any, most: int) -> AsyncIterator[bytes]:
    """The body of an aiohttp response in chunks as they arrive, of at most `most` bytes."""
    # `readany` costs less than the iterator `iter_any`, which calls it.
    read, left = answer.content.readany, most
    while chunk := await read():
        left -= len(chunk)
        if left < 0:
            answer.close()
            raise too_large(most)
        yield chunk


class LimitedContent:
    """The `content` of an aiohttp response for another reader, which raises after `most` bytes."""

    def __init__(self, answer: Any, most: int) -> None:
        self.content = answer.content
        self.status = answer.status
        self._answer = answer
        self._most = most

    def __getattr__(self, name: str) -> Any:
        return getattr(self.content, name)

    async def read(self) -> bytes:
        """The whole body, which `ClientResponse.read` asks for."""
        return await of_aiohttp(self, self._most)

    def iter_any(self) -> AsyncIterator[bytes]:
        """The body in chunks as they arrive."""
        return chunks_of_aiohttp(self, self._most)

    def close(self) -> None:
        self._answer.close()


def limit_httpx(library: ModuleType, response: Any, most: int) -> None:
    """Make reading a response of httpx or httpx2 raise after `most` bytes, decoded where accepted."""
    names = response.headers.get("content-encoding", "").lower().split(",")
    # The last encoding was applied last.
    windows = [_WINDOWS[name.strip()] for name in reversed(names) if name.strip() in _WINDOWS]
    if "content-encoding" in response.headers:
        # The library would decode what this stream has decoded.
        del response.headers["content-encoding"]
    network = response.extensions.get("network_stream")
    failed = response.status_code >= 400
    most = min(most, MOST_OF_AN_ERROR) if failed else most
    response.stream = _stream_class(library)(response.stream, windows, most, network, failed)


@functools.cache
def _stream_class(library: ModuleType) -> Any:
    class LimitedStream(library.AsyncByteStream):  # type: ignore[name-defined,misc]  # known at run time only
        def __init__(self, raw: Any, windows: Sequence[int], most: int, network: Any, failed: bool) -> None:
            self._raw = raw
            self._failed = failed
            self._network = network
            self._inflaters = [_Inflater(window) for window in windows]
            self._most = most

        async def __aiter__(self) -> AsyncIterator[bytes]:
            left = self._most
            async for chunk in self._raw:
                try:
                    for piece in _inflate(chunk, self._inflaters):
                        left -= len(piece)
                        if left < 0:
                            await self.aclose()
                            if self._failed:
                                yield piece[:left]
                                return
                            raise too_large(self._most)
                        yield piece
                except zlib.error as error:
                    raise library.DecodingError(str(error)) from error

        async def aclose(self) -> None:
            if _has_surplus(self._raw):
                # The library would take it for the beginning of the next answer. A connection whose stream is
                # closed does not return to its pool.
                await self._network.aclose()
            await self._raw.aclose()

    return LimitedStream


def _has_surplus(stream: Any) -> bool:
    """Whether more than the answer has arrived. No public name of the libraries tells."""
    for name in ("_stream", "_httpcore_stream", "_stream", "_connection", "_h11_state"):
        stream = getattr(stream, name, None)
    return stream is not None and bool(stream.trailing_data[0])


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
