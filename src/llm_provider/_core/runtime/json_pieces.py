"""Canonical JSON, and the JSON of servers: what takes too much memory is refused, large JSON read in pieces.

The bytes of canonical JSON are hashed into the cache key and sent as the request's body. Keys are sorted and
text is UTF-8. Values that JSON cannot represent exactly raise an error and are never converted: NaN,
infinities, lone surrogates, `bytes` and other objects. Integers have all their digits.

A body of a few MB can hold millions of values, each of some 60 bytes, or be nested as deep. So a scan of its
bytes counts them before anything is built. orjson holds Python's lock from the first byte to the last, 200 ms
and more for 8 MB of log probabilities or embeddings, and needs 16 bytes for each value beside the value. So
the scan also finds where a large body can be cut, and other threads run between its pieces. The garbage
collector pauses meanwhile: 8 MB of log probabilities cost five collections, which find no garbage and stop
every thread for 50 to 130 ms each.
"""

import contextlib
import functools
import gc
import json
import math
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from math import isfinite
from typing import Any, NamedTuple, TypeVar

import orjson

from ..errors import RequestError
from .forks import run_around_forks
from .randomness import make_token

_OPTIONS = orjson.OPT_SORT_KEYS | orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME
_LONG, _LONG_TEXT = 65536, 1024
"""Bytes from which a body is long, and bytes of a value, on average, from which its texts are long."""


def canonical(value: object) -> bytes:
    """Encode `value` as canonical JSON; a `RequestError` says which part of it JSON cannot represent."""
    try:
        encoded = orjson.dumps(value, option=_OPTIONS)
    except (TypeError, RecursionError):
        encoded = b""
    if not encoded:
        # Raised outside the handler, so that the error does not hold orjson's as its context.
        problem = next(_find_problems(value, ""), None)
        if problem is None:
            # An integer beyond 64 bits, as in the arguments of an earlier call.
            with contextlib.suppress(TypeError, ValueError, RecursionError):
                return write_exactly(value, sort_keys=True)
            problem = "it holds a value that is not JSON"
        raise RequestError(f"the request cannot be sent as JSON: {problem}")
    # orjson writes NaN and infinities as null, so only an encoding that contains null is checked for them.
    if b"null" in encoded if len(encoded) < _LONG else _may_contain_null(value, encoded):
        for problem in _find_infinite(value, ""):
            raise RequestError(f"the request cannot be sent as JSON: {problem}")
    return encoded


def write_exactly(value: object, *, sort_keys: bool = False) -> bytes:
    r"""JSON with integers of any size, and with escapes where a text has half a surrogate pair.

    >>> write_exactly({"b": chr(0xD83D), "a": 2**64})
    b'{"b":"\\ud83d","a":18446744073709551616}'
    """
    if not sort_keys:
        with contextlib.suppress(TypeError):
            return orjson.dumps(value)
    write = functools.partial(json.dumps, value, separators=(",", ":"), sort_keys=sort_keys, allow_nan=False)
    try:
        return write(ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return write().encode()


def replace_halves(text: str) -> str:
    """A text with U+FFFD for each half of a surrogate pair, which UTF-8 cannot hold, so others can read it.

    >>> replace_halves("a" + chr(0xD83D))
    'a\ufffd'
    """
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _may_contain_null(value: object, encoded: bytes) -> bool:
    # To search a text of 100,000 tokens takes as long as to hash it. Values of long texts are few.
    values = [value]
    for each in values:
        if isinstance(each, dict):
            values.extend(each.values())
        elif isinstance(each, (list, tuple)):
            values.extend(each)
        if each is None or isinstance(each, float):
            return True
        if len(values) > len(encoded) // _LONG_TEXT:
            return b"null" in encoded
    return False


def _find_infinite(value: object, path: str) -> Iterator[str]:
    if isinstance(value, float):
        if not math.isfinite(value):
            yield f"{path or 'the value'} is {value}"
    elif isinstance(value, dict):
        for key, entry in value.items():
            yield from _find_infinite(entry, f"{path}.{key}" if path else key)
    elif isinstance(value, (list, tuple)):
        for index, entry in enumerate(value):
            yield from _find_infinite(entry, f"{path}[{index}]")


def _find_problems(value: object, path: str, depth: int = 0) -> Iterator[str]:
    where = path or "the value"
    if depth > 250:
        yield f"{where[:80]}... is nested more than 250 levels deep"
    elif value is None or isinstance(value, int):
        return
    elif isinstance(value, str):
        if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
            yield f"{where} holds a lone surrogate, which is not valid Unicode text"
    elif isinstance(value, float):
        if not math.isfinite(value):
            yield f"{where} is {value}"
        elif type(value) is not float:
            yield f"{where} is of type {type(value).__name__}, not a plain float"
    elif isinstance(value, Mapping):
        for key, entry in value.items():
            if not isinstance(key, str):
                yield f"{where} has a key that is not a str: {key!r}"
            else:
                yield from _find_problems(key, f"a key of {where}", depth + 1)
                yield from _find_problems(entry, f"{path}.{key}" if path else key, depth + 1)
        if not isinstance(value, dict):
            yield f"{where} is a {type(value).__name__}, not a dict"
    elif isinstance(value, (list, tuple)):
        for index, entry in enumerate(value):
            yield from _find_problems(entry, f"{path}[{index}]", depth + 1)
    else:
        yield f"{where} is of type {type(value).__name__}"


T = TypeVar("T")

LARGE = 1_000_000
"""Bytes from which JSON is read in pieces, which takes some times as long."""
DEEPEST = 200
"""Lists and objects inside each other."""
MOST_VALUES = 10_000_000
"""Values of one body, without names. Embeddings of 2,048 texts with 4,096 numbers each are 8.4 million."""
_PIECE = 100_000
"""Bytes that orjson reads at once: at most some 10 ms, where they hold many small objects."""
_SHORT = 2 * DEEPEST
"""Bytes that are not nested too deep. Most events of streams have fewer."""
_JSON_CONTENT = re.compile(rb'"content": ?(?:[0-9-]|\{(?!"(?:parts|role)")|\[(?!\{"t|\]))')
"""A `content` that is neither a text nor a list of parts, but the JSON that a model wrote."""
_LONG_INTEGER = b":" + b"0" * 19
_TO_ZEROS = bytes.maketrans(b"123456789-,[ \t\r\n", b"0" * 10 + b":" * 6)
"""A long integer becomes zeros after a colon, which are found in half of the time that a search for digits
takes. The digits of an id come after a letter or a quotation mark."""
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_MANY_BRACKETS = 20_000
"""Brackets that take the event loop some milliseconds."""
_MANY_OBJECTS = 100_000
"""Objects that the collector looks at in some 5 ms."""
_LONG_STRING = 20 * _PIECE
"""Bytes of a string that is read in pieces of its own."""
_CALM = re.compile(rb"[^\\]{12}(?=[^\\\x80-\xbf])|[^\\](?=\\(?:[^u]|u[^dD]|u.[^c-fC-F]))")
"""What ends where a string can be cut: in no character, no escape, and no pair of escapes."""
_MARK = make_token(16)
"""What stands in a piece for a part that is elsewhere. No server knows it."""
_NO_BRACKETS = bytes(set(range(256)).difference(b"[]{}"))
_ONE_KIND = bytes.maketrans(b"{}", b"[]")
_FROZEN_BY_PYTHON = 1000
"""More objects than Python itself has frozen when it starts: none, and 375 in 3.12."""


class JSONLimitError(ValueError):
    """A text is nested too deep, or has too many values. The message says which."""


def takes_long(body: bytes) -> bool:
    """Whether a reply is read in a thread, because the event loop would stand still."""
    if len(body) < LARGE:
        return len(body) > 2 * _MANY_BRACKETS and _count_opened(body) > _MANY_BRACKETS
    return True


def _count_opened(body: bytes) -> int:
    """Brackets that open something. `bytes.count` of CPython 3.11 takes five times as long for most texts."""
    return len(body) - len(body.replace(b"[", b"").replace(b"{", b""))


def loads(body: bytes) -> Any:
    """The value of a JSON text, exactly, in pieces if it is large.

    Half a surrogate pair is a character of its own, as for Python's `json`. An argument of a function, or an
    answer that is JSON itself, may have an integer of any size.

    Raises:
        JSONLimitError: it has more than `DEEPEST` levels or `MOST_VALUES` values.
        ValueError: it is not JSON.
    """
    if len(body) > _SHORT:
        if len(body) >= LARGE:
            with collector_paused:
                return _build(body, _Scan(body))
        if _count_opened(body) > DEEPEST:
            _Scan(body)
    return _read(body)


def is_plain(body: bytes) -> bool:
    """Whether `read_plain` reads a JSON text as `loads` does.

    To find it out takes longer than to read the text, so the cache stores it with an answer.
    """
    return len(body) < LARGE and _count_opened(body) <= DEEPEST and not _has_long_integer(body)


def check_size(body: bytes) -> None:
    """Raise a `JSONLimitError` for a body that would be too much for any reader of JSON."""
    with contextlib.suppress(orjson.JSONDecodeError):
        _Scan(body)


def find_reader(texts: list[bytes]) -> Callable[[bytes], Any]:
    """What reads each of some JSON texts as `loads` does. To search all of them at once takes less time."""
    if max(map(len, texts)) > _SHORT or _has_long_integer(b"\n".join(texts)):
        return loads
    return read_plain


def _read(text: bytes) -> Any:
    """`orjson.loads`, or what it cannot read exactly by Python's `json`."""
    return read_exactly(text.decode()) if _has_long_integer(text) else read_plain(text)


def _has_long_integer(text: bytes) -> bool:
    # Only in these fields are arguments, or an answer, an object. OpenAI sends them as a text.
    return (
        b"000" in text[::6].translate(_TO_ZEROS)  # a sixth of the bytes rules most texts out
        and _LONG_INTEGER in text.translate(_TO_ZEROS)
        and (b'"args"' in text or b'"input"' in text or _JSON_CONTENT.search(text) is not None)
    )


def read_plain(text: bytes) -> Any:
    """`loads` for a text that `is_plain`."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        if not _SURROGATE.search(text):
            raise
        return read_exactly(text.decode())


def read_exactly(text: str) -> Any:
    """The value of a JSON text with integers of any size and halves of surrogate pairs.

    >>> read_exactly('{"id": 123456789012345678901}')
    {'id': 123456789012345678901}
    """
    return json.loads(text, parse_constant=_refuse, parse_float=_read_float)


def _read_float(digits: str) -> float:
    number = float(digits)
    return number if isfinite(number) else _refuse(digits)


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is no number of JSON that can be kept")


class _CollectorPause:
    """The class of `collector_paused`, whose blocks may be open in several threads at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._blocks = 0
        self._enables = False
        """Whether the end of the last block enables the collector."""

    def __enter__(self) -> None:
        with self._lock:
            if not self._blocks:
                self._enables = gc.isenabled()
                gc.disable()
            self._blocks += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._blocks -= 1
            if not self._blocks and self._enables:
                # To count what the program has frozen takes as long as to collect it.
                if gc.get_count()[0] > _MANY_OBJECTS and gc.get_freeze_count() < _FROZEN_BY_PYTHON:
                    # All that was made meanwhile is young, and the next collection would look at each value
                    # of a reply: 500 ms for 10,000,000. This moves it to the oldest generation, unseen.
                    gc.freeze()
                    gc.unfreeze()
                gc.enable()

    def end_in_child(self) -> None:
        """End all blocks: a forked child has none of the threads that would end them."""
        self._lock = threading.Lock()
        if self._blocks:
            self._blocks = 1
            self.__exit__()


collector_paused = _CollectorPause()
"""Collects no garbage within its blocks, in no thread. A collector that the user has disabled stays so."""

run_around_forks(after_in_child=collector_paused.end_in_child)


def read_large(read: Callable[[], T]) -> T:
    """What a function reads from a large reply, without collections of garbage meanwhile."""
    with collector_paused:
        return read()


class _Piece(NamedTuple):
    """A part of a body, up to a comma between two entries, or to the body's end."""

    end: int
    closes: int
    """How many lists and objects end in it that were open at its beginning."""
    opens: bytes
    """The brackets of those that begin in it and are open at its end."""


class _Scan:
    """The pieces of a body and the places of its long strings. It may be malformed inside the pieces."""

    def __init__(self, body: bytes) -> None:
        self.pieces: list[_Piece] = []
        self.strings: list[tuple[int, int]] = []
        self._open = bytearray()
        self._before = self._lowest = 0
        """How many were open at the end of the last piece, and the fewest since then."""
        self._values, self._string, quoted, is_escaped = 1, 0, False, False
        for start in range(0, len(body), _PIECE):
            part = body[start : start + _PIECE]
            if is_escaped:
                part = b"_" + part[1:]
            is_escaped = (len(part) - len(part.rstrip(b"\\"))) % 2 == 1
            if b"\\" in part:
                part = part.replace(b"\\\\", b"__").replace(b'\\"', b"__")
            texts = part.split(b'"')
            self._take(start, start + len(part), texts, quoted=quoted)
            quoted ^= len(texts) % 2 == 0
        if quoted or self._open:
            raise _not_json(len(body))
        self.pieces.append(_Piece(len(body), self._before, b""))

    def _take(self, start: int, end: int, texts: list[bytes], *, quoted: bool) -> None:
        """Take a part of the body, split at its quotation marks; whether it begins in a string."""
        if len(texts) > 1:
            if quoted and start - self._string > _LONG_STRING:
                self.strings.append((self._string, start + len(texts[0])))
            self._string = end - len(texts[-1])
        outside = texts[quoted::2]
        structure = b'"'.join(outside)
        brackets = structure.translate(None, _NO_BRACKETS)
        self._values += sum(map(structure.count, (b",", b"[", b"{")))
        self._values -= structure.translate(_ONE_KIND, b" \t\r\n").count(b"[]")
        if self._values > MOST_VALUES:
            raise JSONLimitError(f"it has more than {MOST_VALUES:,} values")
        _, comma, last = structure.rpartition(b",")
        last_brackets = last.translate(None, _NO_BRACKETS)
        if comma:
            self._follow(brackets[: len(brackets) - len(last_brackets)])
            index = quoted + 2 * (len(outside) - 1 - last.count(b'"'))
            end += 1 - sum(len(text) + 1 for text in texts[index:]) + texts[index].rfind(b",")
            if not self._open:
                raise _not_json(end)
            opens = bytes(self._open[self._lowest :])
            self.pieces.append(_Piece(end, self._before - self._lowest, opens))
            self._before = self._lowest = len(self._open)
        self._follow(last_brackets)

    def _follow(self, brackets: bytes) -> None:
        for bracket in brackets:
            if bracket in b"[{":
                self._open.append(bracket)
                if len(self._open) > DEEPEST:
                    raise JSONLimitError(f"it is nested more than {DEEPEST} levels deep")
            else:
                if not self._open or self._open.pop() != bracket - 2:
                    raise _not_json(0)
                self._lowest = min(self._lowest, len(self._open))


def _not_json(position: int) -> orjson.JSONDecodeError:
    return orjson.JSONDecodeError("brackets or quotation marks without their partners", "", position)


def _build(body: bytes, scan: _Scan) -> Any:
    """The value of a body. Each piece is read by itself, and added to the parts that it goes on with."""
    root, start, open_parts = None, 0, list[Any]()
    for piece in scan.pieces:
        continued = open_parts[-piece.closes - 1 :]
        open_parts = open_parts[: len(open_parts) - piece.closes]
        # Each part that goes on begins with the one inside it, the innermost with 0.
        text = [b"[" if isinstance(part, list) else b'{"%s":' % _MARK.encode() for part in continued]
        text.append(b"0" if continued else b"")
        strings: list[str] = []
        while scan.strings and scan.strings[0][1] < piece.end:
            begin, end = scan.strings.pop(0)
            text += body[start:begin], b"%s%d" % (_MARK.encode(), len(strings))
            strings.append(_read_string(body, begin, end))
            start = end
        text.append(body[start : piece.end])
        if piece.opens:
            text.append(b',"%s"' % _MARK.encode() + b":0" * piece.opens.endswith(b"{"))
        text += [bytes([bracket + 2]) for bracket in reversed(piece.opens)]
        text += [b"]" if isinstance(part, list) else b"}" for part in open_parts[-1:]]
        value = _read(b"".join(text))
        value = outermost = _put_back(value, strings) if strings else value
        added = []
        for part in continued:
            added.append((part, value))
            value = value.pop(0 if isinstance(part, list) else _MARK)
        open_parts += _find_open(outermost)[len(open_parts[-1:]) :] if piece.opens else ()
        for part, more in added:
            part.extend(more) if isinstance(part, list) else part.update(more)
        root, start = root if continued else outermost, piece.end
    return root


def _read_string(body: bytes, start: int, end: int) -> str:
    """The text of a string, which begins and ends at these places."""
    texts = []
    while start < end:
        cut = _find_cut(body, start, end)
        texts.append(_read(b'"%s"' % body[start:cut]))
        start = cut
    return "".join(texts)


def _find_cut(body: bytes, start: int, end: int) -> int:
    """Where the next part of a string may end."""
    for cut in range(start + _LONG_STRING, end, _PIECE):
        calm = _CALM.search(body, cut, min(cut + _PIECE, end))
        if calm is not None:
            return calm.end()
        backslashes = cut - start - len(body[start:cut].rstrip(b"\\"))
        if backslashes > 1:
            return cut - backslashes % 2
    return end


def _find_open(value: Any) -> list[Any]:
    """The lists and objects around the mark in a value, which it removes; empty without a mark."""
    if isinstance(value, dict):
        if value.pop(_MARK, None) is not None:
            return [value]
    elif isinstance(value, list):
        if value[-1:] == [_MARK]:
            del value[-1]
            return [value]
    else:
        return []
    # The last one has it, unless its name stood there before.
    for part in reversed(value.values() if isinstance(value, dict) else value):
        if inside := _find_open(part):
            return [value, *inside]
    return []


def _put_back(value: Any, strings: list[str]) -> Any:
    if isinstance(value, dict):
        return {_put_back(name, strings): _put_back(entry, strings) for name, entry in value.items()}
    if isinstance(value, list):
        return [_put_back(entry, strings) for entry in value]
    is_mark = isinstance(value, str) and value.startswith(_MARK) and value != _MARK
    return strings[int(value[len(_MARK) :])] if is_mark else value
