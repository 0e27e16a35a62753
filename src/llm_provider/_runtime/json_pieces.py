"""Reads the JSON of servers: refuses what takes too much memory, and reads large JSON in pieces.

A body of a few MB can hold millions of values, each of some 60 bytes, or be nested as deep. So its brackets
and commas are counted before anything is built. orjson holds Python's lock from the first byte to the last,
200 ms and more for 8 MB of log probabilities or embeddings, and needs 16 bytes for each value beside the
value. So a large body is read in pieces, between which other threads run. Texts are read in one piece, at
about 2 ms for each MB. The garbage collector pauses meanwhile: 8 MB of log probabilities cost five
collections, which find no garbage and stop every thread for 50 to 130 ms each.
"""

import gc
import json
import re
import threading
from collections.abc import Callable
from itertools import accumulate
from math import isfinite
from typing import Any, NamedTuple, TypeVar

import orjson

from .forks import run_around_forks

T = TypeVar("T")

LARGE = 1_000_000
"""Bytes from which JSON is read in pieces, which takes some times as long."""
DEEPEST = 200
"""Lists and objects inside each other."""
MOST_VALUES = 8_000_000
"""Values of one body: one for eight bytes of the default of `max_response_bytes`."""

_PIECE = 100_000
"""Bytes that orjson reads at once: at most some 10 ms, where they hold many small objects."""
_WINDOW = 500_000
"""Bytes of one search, which holds Python's lock too."""
SHORT = 2 * DEEPEST
"""Bytes that are not nested too deep."""
_LONG_INTEGER = re.compile(rb"[0-9]{19}")
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_FEW_VALUES = DEEPEST
_MANY_BRACKETS = 20_000
"""Brackets that take the event loop some milliseconds."""
_TEXT = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_TOKEN = re.compile(_TEXT.pattern + rb'|[\[\]{}"]', re.DOTALL)
"""A text, a bracket, or the beginning of a text that does not end in the window."""
_INSIDE_TEXT = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)
_BLANK = re.compile(rb"[ \t\r\n]*+")
_COMMA = re.compile(rb"[ \t\r\n]*+,[ \t\r\n]*+")
_NO_BRACKET = bytes(set(range(256)) - set(b"[]{}"))
_STEPS = [(each in b"[{") - (each in b"]}") for each in range(256)]
_STAND_IN_TEXT = "\0a part that is read by itself"
_STAND_IN = orjson.dumps(_STAND_IN_TEXT)
"""Takes the place of such a part, the last entry of a piece."""


class JSONLimitError(ValueError):
    """A text is nested too deep, or has too many values. The message says which."""


def takes_long(body: bytes) -> bool:
    """Whether a reply is read in a thread, because the event loop would stand still."""
    if len(body) < LARGE:
        return len(body) > 2 * _MANY_BRACKETS and _count(body, b"[{") > _MANY_BRACKETS
    return True


def loads(body: bytes) -> Any:
    """The value of a JSON text, exactly, in pieces if it is large.

    Half a surrogate pair is a character of its own, as for Python's `json`. An argument of a function may be
    an integer of any size.

    Raises:
        JSONLimitError: it has more than `DEEPEST` levels or `MOST_VALUES` values.
        ValueError: it is not JSON.
    """
    if len(body) >= LARGE:
        return _read_large(body)
    # Only a longer one can be nested too deep.
    if len(body) > SHORT and body.count(b"[") + body.count(b"{") > DEEPEST:
        steps = map(_STEPS.__getitem__, _TEXT.sub(b"", body).translate(None, _NO_BRACKET))
        if max(accumulate(steps)) > DEEPEST:
            raise _too_deep()
    return _read(body)


def _read_large(body: bytes) -> Any:
    brackets = _count(body, b"[{")
    values = brackets + _count(body, b",")
    if values > MOST_VALUES and b'"' not in body:
        raise _too_many()
    # A body of few values is mostly text.
    root = _divide(body, counts=values > MOST_VALUES) if values > _FEW_VALUES else None
    return _read(body) if root is None else _build(body, root)


def _read(text: bytes) -> Any:
    """`orjson.loads`, or what it cannot read exactly by Python's `json`."""
    # Only in these fields are arguments an object. OpenAI sends them as a text.
    if (b'"args"' in text or b'"input"' in text) and _LONG_INTEGER.search(text):
        return read_exactly(text.decode())
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


def _count(body: bytes, characters: bytes) -> int:
    """How often some ASCII characters occur."""
    starts = range(0, len(body), _WINDOW)
    return sum(body.count(each, start, start + _WINDOW) for start in starts for each in characters)


def _too_deep() -> JSONLimitError:
    return JSONLimitError(f"it is nested more than {DEEPEST} levels deep")


def _too_many() -> JSONLimitError:
    return JSONLimitError(f"it has more than {MOST_VALUES:,} values")


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


class _Part(NamedTuple):
    """A list or an object that is longer than a piece, or the whole value."""

    start: int
    end: int
    cuts: list[int]
    """Commas between its entries, each a piece or more after the one before."""
    parts: list["_Part"]
    """Its entries that are longer than a piece."""


def _divide(body: bytes, *, counts: bool) -> _Part | None:
    """The list or object in a body with its parts; None for another value. `counts`: count its values."""
    starts: list[int] = []
    last_cuts: list[int] = []
    divided: list[tuple[list[int], list[_Part]]] = []
    root, position, after, values = None, 0, 0, 0
    while position < len(body):
        stop = min(position + _WINDOW, len(body))
        for token in _TOKEN.finditer(body, position, stop):
            start, end = token.span()
            if counts:
                values += body.count(b",", after, start)
                if values > MOST_VALUES:
                    raise _too_many()
            if starts:
                if start - last_cuts[-1] >= _PIECE:
                    last_cuts[-1] = _cut(body, after, start, last_cuts[-1], divided[-1][0])
            elif root is not None or not _BLANK.fullmatch(body, after, start):
                raise ValueError("there is more than one value")
            first = body[start]
            if first == 0x22:
                if not starts:
                    return None
                if end - start == 1:
                    # It does not end in the window, which so begins again behind it.
                    stop = after = _end_of_text(body, end)
                    break
            elif first in b"[{":
                if len(starts) == DEEPEST:
                    raise _too_deep()
                values += 1
                starts.append(start)
                last_cuts.append(start)
                divided.append(([], []))
            else:
                if not starts or body[starts[-1]] != first - 2:
                    raise ValueError("its brackets do not match")
                begin, (cuts, parts) = starts.pop(), divided.pop()
                last_cuts.pop()
                if not starts:
                    root = _Part(begin, end, cuts, parts)
                elif end - begin > _PIECE:
                    divided[-1][1].append(_Part(begin, end, cuts, parts))
            after = end
        position = stop
    if starts or (root is not None and not _BLANK.fullmatch(body, root.end)):
        raise ValueError("it ends too early, or too late")
    return root


def _cut(body: bytes, after: int, start: int, last: int, cuts: list[int]) -> int:
    """Add the commas between two tokens where a list or an object is divided. Returns the last of all."""
    while (comma := body.find(b",", max(after, last + _PIECE), start)) >= 0:
        cuts.append(comma)
        last = comma
    return last


def _end_of_text(body: bytes, position: int) -> int:
    """The end of a long text, which goes on at a position."""
    while True:
        inside = _INSIDE_TEXT.match(body, position, position + _WINDOW)
        assert inside is not None
        position = inside.end()
        if position >= len(body):
            raise ValueError("a text does not end")
        if body[position] == 0x22:
            return position + 1
        # The backslash is the last byte of the window, or of the body.
        position += 2 if body[position] == 0x5C else 0


def _build(body: bytes, part: _Part) -> Any:
    """The value of a list or an object, whose pieces are read one after the other."""
    view, first, last = memoryview(body), body[part.start : part.start + 1], body[part.end - 1 : part.end]
    value: Any = [] if first == b"[" else {}
    stops: list[tuple[int, _Part | None]] = [(inner.start, inner) for inner in part.parts]
    stops += [*((cut, None) for cut in part.cuts), (part.end - 1, None)]
    position, follows_part = part.start + 1, False
    for stop, inner in sorted(stops, key=lambda each: each[0]):
        if follows_part:
            comma = _COMMA.match(body, position, stop)
            position = position if comma is None else comma.end()
        is_blank = _BLANK.fullmatch(body, position, stop) is not None
        if inner is None and is_blank and (comma is None if follows_part else len(stops) == 1):
            pass  # the comma or the end comes directly behind a part, or it is empty
        elif (follows_part and comma is None) or (inner is None and is_blank):
            raise ValueError("a comma or a value is missing")
        else:
            stand_in = b"" if inner is None else _STAND_IN
            piece = _read(b"".join((first, view[position:stop], stand_in, last)))
            _add(value, piece, None if inner is None else _build(body, inner))
        position, follows_part = (stop + 1, False) if inner is None else (inner.end, True)
    return value


def _add(value: Any, piece: Any, built: Any) -> None:
    """Add the entries of a piece. `built` is the value of a part at its end, or None."""
    if isinstance(piece, list):
        if built is not None:
            piece[-1] = built
        value.extend(piece)
    else:
        if built is not None:
            # A name that is repeated in the piece keeps its first place.
            name = next(name for name in reversed(piece) if piece[name] == _STAND_IN_TEXT)
            piece[name] = built
        value.update(piece)
