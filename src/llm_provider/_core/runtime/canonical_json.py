"""Canonical JSON: the bytes that are hashed into the cache key and sent as the request's body.

Keys are sorted and text is UTF-8. Values that JSON cannot represent exactly raise an error and are never
converted: NaN, infinities, lone surrogates, `bytes` and other objects. Integers have all their digits.
"""

import contextlib
import functools
import json
import math
from collections.abc import Iterator, Mapping

import orjson

from ..errors import RequestError

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
