"""The stored form of an answer: a checksum, a small head, the reply's bytes, and what was asked.

    16 bytes SHA-256 of key, head and reply | head: one line of JSON | reply | 16 bytes SHA-256 | question

A hit reads the first three and never looks at the question, which explains misses and names what is
stored. The key is under the checksum, so that an answer which a damaged index puts under another key is
recognised as well.
"""

from __future__ import annotations

import hashlib
import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from ..._runtime.frozen import quickly_made

SCHEMA_VERSION = 2
"""Part of every key and of the directory. A change of what is hashed or stored raises it, so that entries of
another version are left alone."""

_CHECKSUM_BYTES = 16
_LONGEST_TEXT = 2048
"""Characters above which a text of a question is cut: media and documents, not what tells two apart."""
_EXCERPT = 120
_COMPRESSED_ABOVE = 4096
"""Bytes. Below, compressing takes longer than writing what it saves."""

ELIDED = "$elided"
"""The only field of the object that stands for a text that was cut."""


@quickly_made
@dataclass(frozen=True, slots=True)
class Asked:
    """What an answer is the answer to: all that is in its key, and the model as its user named it.

    Args:
        provider: The route's name.
        base_url: The server asked; None where the provider has only one.
        operation: The endpoint.
        body: The payload as canonical JSON.
        headers: The extra headers that are sent.
        draw: Number of the sample, from 0.
        model: The model as the user named it, such as "groq/openai/gpt-oss-120b".
    """

    provider: str
    base_url: str | None
    operation: str
    body: bytes
    headers: Mapping[str, str]
    draw: int
    model: str

    def facts(self) -> dict[str, Any]:
        """What is stored of it, as JSON. Of headers only digests: they may hold somebody's secret.

        >>> Asked("openai", None, "chat", b'{"seed":1}', {}, 0, "gpt-6.1-sol").facts()["payload"]
        {'seed': 1}
        """
        facts: dict[str, Any] = orjson.loads(self._encoded())
        return facts

    def packed(self) -> bytes:
        """`facts` as they are stored."""
        return _compressed(self._encoded())

    def _encoded(self) -> bytes:
        # In a short payload no text is long: it is taken as it is, without being parsed.
        short = len(self.body) <= _LONGEST_TEXT
        facts = {
            "base_url": self.base_url,
            "draw": self.draw,
            "headers": {name: _digest(value) for name, value in self.headers.items()},
            "model": self.model,
            "operation": self.operation,
            "payload": orjson.Fragment(self.body) if short else elided(orjson.loads(self.body)),
            "provider": self.provider,
        }
        return orjson.dumps(facts, option=orjson.OPT_SORT_KEYS)


@quickly_made
@dataclass(frozen=True, slots=True)
class Entry:
    """A stored answer.

    Args:
        body: The provider's reply as it came.
        seconds: How long the original call took.
        created: Unix time of the original call.
        served: The model that answered, in the provider's words.
        asked: What was asked, for entries that are to be stored; a hit does not read it.
    """

    body: bytes
    seconds: float
    created: float
    served: str | None = None
    asked: Asked | None = None


def kind_of(provider: str, operation: str) -> str:
    """What questions share that are worth comparing, and under which entries are found."""
    return f"{provider} {operation}"


def packed(key: str, entry: Entry) -> bytes:
    """The stored form of an entry.

    >>> unpacked("k", packed("k", Entry(b"{}", seconds=0.5, created=0.0)))
    Entry(body=b'{}', seconds=0.5, created=0.0, served=None, asked=None)
    """
    return joined(key, entry, b"" if entry.asked is None else entry.asked.packed())


def joined(key: str, entry: Entry, question: bytes) -> bytes:
    """The stored form of an entry and a question that is packed already."""
    head: dict[str, Any] = {"created": entry.created, "seconds": entry.seconds, "size": len(entry.body)}
    if entry.served is not None:
        head["served"] = entry.served
    answer = b"".join((orjson.dumps(head), b"\n", entry.body))
    parts = [_checksum(key, answer), answer]
    if question:
        parts += [_checksum(key, question), question]
    return b"".join(parts)


def unpacked(key: str, value: bytes) -> Entry | None:
    """The entry of a stored value; None where it is damaged, or not the value of this key."""
    parts = _split(key, value)
    if parts is None:
        return None
    head, body, _ = parts
    return Entry(body, head["seconds"], head["created"], head.get("served"))


def question_of(key: str, value: bytes) -> bytes:
    """The packed question of a stored value; empty where there is none or it is damaged."""
    parts = _split(key, value)
    rest = b"" if parts is None else parts[2]
    question = rest[_CHECKSUM_BYTES:]
    return question if rest[:_CHECKSUM_BYTES] == _checksum(key, question) else b""


def facts_of(question: bytes) -> dict[str, Any] | None:
    """What `Asked.facts` gave, of a packed question; None of an empty one."""
    if not question:
        return None
    compressed = not question.startswith(b"{")
    facts: dict[str, Any] = orjson.loads(zlib.decompress(question) if compressed else question)
    return facts


def packed_facts(facts: Mapping[str, Any]) -> bytes:
    """The inverse of `facts_of`."""
    return _compressed(orjson.dumps(facts, option=orjson.OPT_SORT_KEYS))


def created_and_models(key: str, value: bytes) -> tuple[float, tuple[str, ...]]:
    """When an answer was given, as Unix time, and by what: the model's names by its user and its provider.

    What is damaged was given by nobody, an infinity ago.
    """
    entry = unpacked(key, value)
    if entry is None:
        return -math.inf, ()
    facts = facts_of(question_of(key, value)) or {}
    return entry.created, tuple(name for name in (facts.get("model"), entry.served) if name is not None)


def _compressed(encoded: bytes) -> bytes:
    return zlib.compress(encoded, 1) if len(encoded) > _COMPRESSED_ABOVE else encoded


def _split(key: str, value: bytes) -> tuple[dict[str, Any], bytes, bytes] | None:
    try:
        start = value.index(b"\n", _CHECKSUM_BYTES) + 1
        head = orjson.loads(value[_CHECKSUM_BYTES:start])
        end = start + head["size"]
    except (ValueError, KeyError, TypeError):
        return None
    if _checksum(key, memoryview(value)[_CHECKSUM_BYTES:end]) != value[:_CHECKSUM_BYTES]:
        # Flipped or cut on disk: as good as absent, and written anew by the call that follows.
        return None
    return head, value[start:end], value[end:]


def elided(value: Any) -> Any:
    """JSON with each long text replaced by an object of its beginning, length and digest.

    >>> elided(["short", "x" * 5000])[1]["$elided"]["length"]
    5000
    """
    if isinstance(value, str):
        if len(value) <= _LONGEST_TEXT:
            return value
        return {ELIDED: {"length": len(value), "sha256": _digest(value), "start": value[:_EXCERPT]}}
    if isinstance(value, dict):
        return {name: elided(part) for name, part in value.items()}
    if isinstance(value, list):
        return [elided(part) for part in value]
    return value


def is_elided(value: Any) -> bool:
    """Whether `elided` has cut something.

    >>> is_elided(elided(["x" * 5000])), is_elided(["short"])
    (True, False)
    """
    if isinstance(value, dict):
        return ELIDED in value or any(map(is_elided, value.values()))
    return isinstance(value, list) and any(map(is_elided, value))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _checksum(key: str, stored: bytes | memoryview) -> bytes:
    # Processors have instructions for SHA-256: a hit's is a third faster than with BLAKE2b.
    return hashlib.sha256(b"".join((key.encode(), stored))).digest()[:_CHECKSUM_BYTES]
