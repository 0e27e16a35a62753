"""Reads large JSON in pieces, so that other threads run in between.

orjson holds Python's lock from the first byte to the last: 8 MB of log probabilities or embeddings take 200
ms and more. Texts are read in one piece, at about 2 ms for each MB. The garbage collector pauses meanwhile:
8 MB of log probabilities cost five collections, which find no garbage and stop every thread for 50 to 130 ms
each.
"""

import gc
import re
import threading
from collections.abc import Callable
from typing import Any, TypeVar

import orjson

from .forks import run_around_forks

T = TypeVar("T")

LARGE = 1_000_000
"""Bytes from which JSON is read in pieces, which takes some times as long."""
_PIECE = 100_000
"""Bytes that orjson reads at once: at most some 10 ms, where they hold many small objects."""
_FEW_BRACKETS = 1000
"""A body with fewer brackets is mostly text."""
_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[\[\]{}]', re.DOTALL)
_MARK = rb"\u0000list "
"""The beginning of the text that replaces a list which was read by itself."""


def loads(body: bytes) -> Any:
    """`orjson.loads`, in pieces if the body is large; a `ValueError` if it is not JSON."""
    if len(body) < LARGE:
        return orjson.loads(body)
    is_text = body.count(b"[") + body.count(b"{") < _FEW_BRACKETS
    lists: list[list[object]] = []
    rest: list[bytes] = []
    after = 0
    for start, end, cuts in [] if is_text or _MARK in body else _find_long_lists(body):
        entries = _entries(body, start + 1, end - 1, cuts)
        if entries is None:
            return orjson.loads(body)
        rest += body[after:start], b'"%s%d"' % (_MARK, len(lists))
        lists.append(entries)
        after = end
    if not lists:
        return orjson.loads(body)
    rest.append(body[after:])
    return _put_back(orjson.loads(b"".join(rest)), lists)


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


def _find_long_lists(body: bytes) -> list[tuple[int, int, list[int]]]:
    """The start, the end and the ends of the inner values of each innermost long list; empty if malformed."""
    lists: list[tuple[int, int, list[int]]] = []
    open_parts: list[tuple[int, list[int]]] = []
    for token in _TOKEN.finditer(body):
        first = body[token.start()]
        if first in b"[{":
            open_parts.append((token.start(), []))
        elif first in b"]}":
            if not open_parts or body[open_parts[-1][0]] != first - 2:
                return []
            start, cuts = open_parts.pop()
            end = token.end()
            if open_parts:
                open_parts[-1][1].append(end)
            has_long_parts = lists and lists[-1][0] > start
            if first == ord("]") and end - start > _PIECE and cuts and not has_long_parts:
                lists.append((start, end, cuts))
    return [] if open_parts else lists


def _entries(body: bytes, start: int, end: int, cuts: list[int]) -> list[object] | None:
    """The entries of a list, whose objects and lists end at the cuts; None if it is not JSON."""
    entries: list[object] = []
    begin = start
    for cut in [*cuts, end]:
        if cut - begin < _PIECE and cut != end:
            continue
        piece = body[begin:cut].strip()
        if begin != start and piece:
            # The comma before its first entry.
            if piece[:1] != b"," or not piece[1:].strip():
                return None
            piece = piece[1:]
        entries += orjson.loads(b"[%s]" % piece)
        begin = cut
    return entries


def _put_back(value: object, lists: list[list[object]]) -> object:
    if isinstance(value, dict):
        return {name: _put_back(entry, lists) for name, entry in value.items()}
    if isinstance(value, list):
        return [_put_back(entry, lists) for entry in value]
    if isinstance(value, str) and value.startswith("\0list "):
        return lists[int(value[6:])]
    return value
