"""Strategies: how a broken or hostile server changes the JSON, the events and the bytes of an answer."""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import orjson
from hypothesis import settings
from hypothesis import strategies as st

from wire_shapes import SHAPES, Shape

_quick = settings(max_examples=100, derandomize=True, database=None, deadline=None)
fuzzed = settings() if settings.get_current_profile_name() == "fuzz" else _quick
"""The settings of every fuzz test: those of `make fuzz`, else a hundred examples, always the same."""


def nested(levels: int) -> Any:
    value: Any = "deep"
    for _ in range(levels):
        value = [value]
    return value


JUNK: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 7, 2**31, 2**63, 2**64 - 1, -(2**63), 0.5, -0.0, 1e300,
    "", " ", "x", "stop", "error", "STOP", "tool_use", "function_call", "refusal", "null", "1", "text",
    "[DONE]", "\x00", "\ufeff", "é" * 9, "\U0001f600", [], {}, [[]], [{}], [None], {"": {}}, nested(20),
    nested(60), {"type": "text"}, {"type": "text", "text": "other"}, {"text": 5}, {"index": 1},
    {"error": {"message": "made up"}}, {"type": "error"},
)  # fmt: skip

CHANGES = ("drop", "junk", "copy", "swap", "wrap", "unwrap", "cut", "rename")
EVENT_CHANGES = ("drop", "copy", "swap", "last", "first", "end", "junk", "inside", "inside", "inside")
BYTE_CHANGES = ("insert", "delete", "flip", "copy", "end", "line ends")
BYTES = (
    b"\xef\xbb\xbf", b"\r", b"\n", b"\r\n", b"\n\n", b"\x00", b"\xff", b"\xe2\x80\xa8", b" ",
    b"data: ", b"data:", b"data\n\n", b": comment\n\n", b"event: error\n", b"id: 1\n", b"retry: 9\n",
    b"data: [DONE]\n\n", b"data: {}\n\n", b"data: null\n\n",
    b'"', b"\\", b"\\ud800", b"{", b"}", b"[", b"]", b"1e400", b"NaN", b"9" * 40,
)  # fmt: skip

numbers = st.integers(0, 4095)
json_changes = st.lists(st.tuples(st.sampled_from(CHANGES), numbers, numbers), min_size=1, max_size=4)
event_changes = st.lists(
    st.tuples(st.sampled_from(EVENT_CHANGES), numbers, numbers, st.sampled_from(CHANGES)),
    min_size=1,
    max_size=4,
)
byte_changes = st.lists(st.tuples(st.sampled_from(BYTE_CHANGES), numbers, numbers), max_size=3)
cuts = st.lists(numbers, max_size=6)


def shapes(wire_format: str) -> st.SearchStrategy[str]:
    """The names of the shapes of a format, which a report shows in one word."""
    return st.sampled_from([shape.name for shape in SHAPES[wire_format]])


def shape_of(wire_format: str, name: str) -> Shape:
    return next(shape for shape in SHAPES[wire_format] if shape.name == name)


def changed(value: Any, changes: Sequence[tuple[str, int, int]]) -> Any:
    """JSON with some of its values changed."""
    root = [_copy(value)]
    for change, where, how in changes:
        positions = list(_positions(root))
        container, key = positions[where % len(positions)]
        _change(container, key, change, how)
        if not root:
            return None
    return root[0]


def _copy(value: Any) -> Any:
    return orjson.loads(orjson.dumps(value))


def _positions(container: Any) -> Iterator[tuple[Any, Any]]:
    for key in range(len(container)) if isinstance(container, list) else list(container):
        yield container, key
        if isinstance(container[key], (dict, list)):
            yield from _positions(container[key])


def _change(container: Any, key: Any, change: str, how: int) -> None:
    value = container[key]
    others = list(range(len(container)) if isinstance(container, list) else container)
    other = others[how % len(others)]
    match change:
        case "drop":
            del container[key]
        case "junk":
            container[key] = _copy(JUNK[how % len(JUNK)])
        case "copy" if isinstance(container, list):
            container.insert(key, _copy(value))
        case "copy":
            container[other] = _copy(value)
        case "swap":
            container[key], container[other] = container[other], value
        case "wrap":
            container[key] = [value] if how % 2 else {"value": value}
        case "unwrap" if isinstance(value, (list, dict)) and value:
            inside = value if isinstance(value, list) else list(value.values())
            container[key] = inside[how % len(inside)]
        case "cut" if isinstance(value, (str, list)) and value:
            container[key] = value[: how % len(value)]
        case "rename" if isinstance(container, dict):
            container[f"{key}_"] = container.pop(key)


def changed_events(events: Sequence[Any], changes: Sequence[tuple[str, int, int, str]]) -> list[Any]:
    """Events of a stream, some of them lost, repeated, out of order, or changed inside."""
    result: list[Any] = _copy(list(events))  # a reader may write into what it reads
    for change, where, how, inside in changes:
        if not result:
            break
        here, there = where % len(result), how % len(result)
        match change:
            case "drop":
                del result[here]
            case "copy":
                result.insert(there, result[here])
            case "swap":
                result[here], result[there] = result[there], result[here]
            case "last":
                result.append(result.pop(here))
            case "first":
                result.insert(0, result.pop(here))
            case "end":
                del result[here:]
            case "junk":
                result.insert(here, _copy(JUNK[how % len(JUNK)]))
            case "inside":
                result[here] = changed(result[here], [(inside, how, where)])
    return result


def changed_bytes(stream: bytes, changes: Sequence[tuple[str, int, int]]) -> bytes:
    """Bytes, some of them lost, added or changed."""
    for change, where, how in changes:
        if not stream:
            break
        here = where % len(stream)
        match change:
            case "insert":
                stream = stream[:here] + BYTES[how % len(BYTES)] + stream[here:]
            case "delete":
                stream = stream[:here] + stream[here + 1 + how % 40 :]
            case "flip":
                stream = stream[:here] + bytes([stream[here] ^ (1 << how % 8)]) + stream[here + 1 :]
            case "copy":
                stream = stream[:here] + stream[here : here + how % 400] * 2 + stream[here + how % 400 :]
            case "end":
                stream = stream[:here]
            case "line ends":
                stream = stream.replace(b"\n", (b"\r\n", b"\r")[how % 2])
    return stream


def pieces(stream: bytes, cuts: Sequence[int]) -> list[bytes]:
    """Bytes in the pieces in which they arrive."""
    edges = [0, *sorted(cut % (len(stream) + 1) for cut in cuts), len(stream)]
    return [stream[start:end] for start, end in itertools.pairwise(edges)]
