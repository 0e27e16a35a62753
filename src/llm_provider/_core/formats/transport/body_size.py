"""Reads the bodies of answers up to a number of decoded bytes.

A compressed body of 1 MB can decode to 1 GB, and the HTTP libraries decode each piece of a body completely.
The readers here decode in small pieces and stop at the limit. `of_aiohttp` and `chunks_of_aiohttp` read
answers of aiohttp, which has left them encoded. `limit_httpx` makes a response of httpx or httpx2 decode in
pieces. The status of a failure was read before its body, so a body that is cut or cannot be decoded only
loses the message.
"""

import codecs
import functools
import zlib
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from functools import partial
from types import ModuleType
from typing import Any

from ...errors import APIResponseValidationError
from ...runtime.json_pieces import JSONLimitError, check_size, takes_long
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


async def of_aiohttp(answer: Any, most: int) -> bytes:
    """The whole body of an aiohttp response; an `APIResponseValidationError` above `most` bytes.

    Of an answer that is an error it is the beginning, so that its status still says what failed.
    """
    return b"".join([piece async for piece in chunks_of_aiohttp(answer, most)])


async def chunks_of_aiohttp(answer: Any, most: int) -> AsyncIterator[bytes]:
    """The body of an aiohttp response in chunks as they arrive, of at most `most` bytes."""
    # `readany` costs less than the iterator `iter_any`, which calls it.
    read, failed = answer.content.readany, answer.status >= 400
    left = most = min(most, MOST_OF_AN_ERROR) if failed else most
    decode = _decoder(answer.headers, failed=failed)
    try:
        while chunk := await read():
            for piece in (chunk,) if decode is None else decode(chunk):
                left -= len(piece)
                if left < 0:
                    answer.close()
                    yield _beginning(piece[:left], most, failed=failed)
                    return
                yield piece
    except Exception as error:
        answer.close()
        if isinstance(error, zlib.error):
            from aiohttp.http_exceptions import ContentEncodingError

            raise ContentEncodingError(f"the body cannot be decoded: {error}") from None
        if not failed:
            raise


def _beginning(piece: bytes, most: int, *, failed: bool) -> bytes:
    """The last piece of a failure that is read; the error for a success of more bytes."""
    if not failed:
        raise too_large(most)
    return piece


def limit_httpx(library: ModuleType, response: Any, most: int) -> None:
    """Make reading a response of httpx or httpx2 raise after `most` bytes, decoded where accepted."""
    failed = response.status_code >= 400
    decode = _decoder(response.headers, failed=failed) or (lambda chunk: (chunk,))
    if "content-encoding" in response.headers:
        # The library would decode what this stream has decoded.
        del response.headers["content-encoding"]
    network = response.extensions.get("network_stream")
    most = min(most, MOST_OF_AN_ERROR) if failed else most
    response.stream = _stream_class(library)(response.stream, decode, most, network, failed)


def _decoder(headers: Any, *, failed: bool) -> Callable[[bytes], Iterable[bytes]] | None:
    """Decodes the next part of a body; None for a body that is not encoded.

    Other bytes than the headers promise end a success. The bytes of a failure are kept if they may be plain
    text.
    Text under the name of an encoding that was not accepted is text: a proxy has decoded it.
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
            self._raw = raw
            self._failed = failed
            self._network = network
            self._decode = decode
            self._most = most

        async def __aiter__(self) -> AsyncIterator[bytes]:
            left = self._most
            try:
                async for chunk in self._raw:
                    for piece in self._decode(chunk):
                        left -= len(piece)
                        if left < 0:
                            await self.aclose()
                            yield _beginning(piece[:left], self._most, failed=self._failed)
                            return
                        yield piece
            except zlib.error as error:
                raise library.DecodingError(str(error)) from error
            except library.TransportError:
                if not self._failed:
                    raise

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
