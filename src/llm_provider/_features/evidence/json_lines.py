"""JSON in one form: sorted names, no spaces, and what JSON lacks as Python writes it."""

import contextlib
import json
from typing import Any

import orjson

from ..._core.errors import EvidenceError, RequestError
from ..._core.runtime.canonical_json import canonical


def write_json(value: object) -> bytes:
    """A value as JSON; `read_json` reads it.

    >>> write_json({"b": float("nan"), "a": 10**30})
    b'{"a":1000000000000000000000000000000,"b":NaN}'
    """
    try:
        text = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
        # It writes NaN as null. To look for NaN in Python takes ten times as long.
        return text if b"null" not in text or orjson.loads(text) == value else canonical(value)
    except (RequestError, TypeError):
        # NaN, whole numbers of more than 64 bits, and halves of a surrogate pair.
        return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def read_json(text: bytes, where: str) -> Any:
    """The value of a text; `EvidenceError` if `write_json` would have written it in another way."""
    try:
        value = orjson.loads(text)
        if orjson.dumps(value, option=orjson.OPT_SORT_KEYS) == text:
            return value
    except (ValueError, TypeError):
        pass
    with contextlib.suppress(ValueError, RecursionError):
        value = json.loads(text)
        if write_json(value) == text:
            return value
    raise EvidenceError(f"{where}: this is not JSON in its canonical form")
