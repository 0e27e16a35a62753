"""The stored format of an answer, and its key, which identifies the question.

    16 bytes SHA-256 of key, head and reply | head: one line of JSON | reply | 16 bytes SHA-256 | question

A hit reads the first three parts only. The question serves to explain misses and to find entries by model.
The checksum includes the key, so it also detects an answer that a damaged index has put under another key.

The key is the SHA-256 of canonical JSON `[schema version, provider, base_url, operation, payload, headers,
draw]`: every field that is sent, and nothing else, such as API key, timeout, retries or transport.
"""

import functools
import hashlib
import zlib
from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

import orjson

from ..json_values import JSONObject
from ..runtime.canonical_json import canonical

SCHEMA_VERSION = 2
"""Part of every key and of the directory's name. Every change of the hashed or stored format raises it, so
that entries of another version are left alone."""

_CHECKSUM_BYTES = 16
LONGEST_TEXT = 2048
"""Characters. A longer text of a question, such as an image or a document, is stored as a digest."""
_EXCERPT = 120
_COMPRESSED_ABOVE = 4096
"""Bytes. For a shorter question, compressing takes longer than writing the bytes that it saves."""

ELIDED = "$elided"
"""The only field of the object that replaces a long text."""

QuestionFields: TypeAlias = JSONObject
"""The stored JSON of a question: the fields of `Question`, where `payload` replaces `body`."""


class Question(NamedTuple):
    """The question that an answer belongs to: the contents of its key, and the model as the user named it."""

    provider: str
    """The route's name."""
    base_url: str | None
    """The server; None if the provider has only one."""
    operation: str
    """The endpoint."""
    body: bytes
    """The payload as canonical JSON."""
    headers: Mapping[str, str]
    """The extra headers that are sent."""
    draw: int
    """The number of the sample, from 0."""
    model: str

    @property
    def tag(self) -> str:
        """The tag of the answer: only questions to the same provider and endpoint are compared."""
        return f"{self.provider} {self.operation}"

    def to_json(self) -> QuestionFields:
        """The question as `decode_question` gives it."""
        question: QuestionFields = orjson.loads(self.encode())
        return question

    def encode(self) -> bytes:
        """The question as JSON. Headers are stored as digests, as they may contain secrets."""
        # A short payload contains no long text, and need not be parsed.
        short = len(self.body) <= LONGEST_TEXT
        question = {
            "base_url": self.base_url,
            "draw": self.draw,
            "headers": {name: digest(value) for name, value in self.headers.items()},
            "model": self.model,
            "operation": self.operation,
            "payload": orjson.Fragment(self.body) if short else elide(orjson.loads(self.body)),
            "provider": self.provider,
        }
        return orjson.dumps(question, option=orjson.OPT_SORT_KEYS)


class Entry(NamedTuple):
    """A stored answer; a tuple, which a hit makes in a third of the time that a frozen dataclass takes.

    `body` is the provider's reply as it came, `seconds` the duration of the original call, `created` its Unix
    time, and `served` the model that answered, as the provider names it. `question` is for an entry to be
    stored; a hit does not read it. `price` is in USD. `origin` has the fields of `ServedBy` that the headers
    and the address told. Both are None where they are not known, as in entries of older versions.
    """

    body: bytes
    seconds: float
    created: float
    served: str | None = None
    question: Question | None = None
    price: float | None = None
    origin: Mapping[str, str] | None = None

    def list_known(self) -> dict[str, object]:
        """The fields that the head has only where they are known."""
        fields = {"served": self.served, "price": self.price, "origin": self.origin or None}
        return {name: value for name, value in fields.items() if value is not None}


def encode_entry(key: str, entry: Entry, question: bytes | None = None) -> bytes:
    """The stored bytes of an entry; `question` replaces its question, as JSON, and may be empty."""
    if question is None:
        question = b"" if entry.question is None else entry.question.encode()
    head: dict[str, object] = {"created": entry.created, "seconds": entry.seconds, "size": len(entry.body)}
    answer = b"".join((orjson.dumps(head | entry.list_known()), b"\n", entry.body))
    parts = [_checksum(key, answer), answer]
    if question:
        packed = zlib.compress(question, 1) if len(question) > _COMPRESSED_ABOVE else question
        parts += [_checksum(key, packed), packed]
    return b"".join(parts)


def decode_entry(key: str, value: bytes) -> Entry | None:
    """The entry of a stored value; None if the value is damaged, or belongs to another key."""
    try:
        start = value.index(b"\n", _CHECKSUM_BYTES) + 1
        head = orjson.loads(value[_CHECKSUM_BYTES:start])
        end = start + head["size"]
        seconds, created, served, price, origin = (
            head["seconds"],
            head["created"],
            head.get("served"),
            head.get("price"),
            head.get("origin"),
        )
        # A head that another program wrote may have a valid checksum. Only this sum needs them to be numbers.
        seconds + created + (price if "price" in head else 0) + end
    except (ValueError, KeyError, TypeError):
        return None
    if type(end) is not int or (type(served) is not str and "served" in head):
        return None
    if origin is not None and type(origin) is not dict:
        return None
    # A value that was damaged on disk counts as absent, and the call that follows writes it again.
    intact = value.startswith(_checksum(key, memoryview(value)[_CHECKSUM_BYTES:end]))
    return Entry(value[start:end], seconds, created, served, None, price, origin) if intact else None


def decode_question(key: str, value: bytes) -> QuestionFields | None:
    """The question of a stored value; None if there is none, or if it is damaged."""
    entry = decode_entry(key, value)
    if entry is None:
        return None
    rest = value[value.index(b"\n", _CHECKSUM_BYTES) + 1 + len(entry.body) :]
    packed = rest[_CHECKSUM_BYTES:]
    if not packed or rest[:_CHECKSUM_BYTES] != _checksum(key, packed):
        return None
    question: QuestionFields = orjson.loads(packed if packed.startswith(b"{") else zlib.decompress(packed))
    return question


def tag_of(question: QuestionFields | None) -> str | None:
    """`Question.tag`, of a stored question."""
    return None if question is None else f"{question['provider']} {question['operation']}"


def elide(value: object) -> object:
    """JSON in which an object with an excerpt, the length and a digest replaces each long text."""
    if isinstance(value, str):
        if len(value) <= LONGEST_TEXT:
            return value
        return {ELIDED: {"length": len(value), "sha256": digest(value), "start": value[:_EXCERPT]}}
    if isinstance(value, dict):
        return {name: elide(part) for name, part in value.items()}
    return [elide(part) for part in value] if isinstance(value, list) else value


def lacks_text(value: object) -> bool:
    """Whether `elide` has replaced a text.

    >>> lacks_text(elide(["x" * 5000])), lacks_text(["short"])
    (True, False)
    """
    if isinstance(value, dict):
        return ELIDED in value or any(map(lacks_text, value.values()))
    return isinstance(value, list) and any(map(lacks_text, value))


def digest(text: str) -> str:
    """What stands for a long text of a question."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _checksum(key: str, stored: bytes | memoryview) -> bytes:
    # Processors have instructions for SHA-256: the checksum of a hit takes a third less than with BLAKE2b.
    return hashlib.sha256(b"".join((key.encode(), stored))).digest()[:_CHECKSUM_BYTES]


def cache_key(
    *, provider: str, base_url: str | None, operation: str, body: bytes, headers: Mapping[str, str], draw: int
) -> str:
    """The key of one sample, 64 hexadecimal digits. It takes the arguments of `Question`.

    >>> others = dict(provider="openai", base_url=None, operation="chat", headers={}, draw=0)
    >>> cache_key(body=b'{"seed":1}', **others) == cache_key(body=b'{"seed":1.0}', **others)
    False
    """
    head, tail = key_frame(
        provider=provider, base_url=base_url, operation=operation, headers=headers, draw=draw
    )
    digest = hashlib.sha256(head)
    digest.update(body)  # joined with the others, a long prompt would be copied
    digest.update(tail)
    return digest.hexdigest()


def key_frame(
    *, provider: str, base_url: str | None, operation: str, headers: Mapping[str, str], draw: int
) -> tuple[bytes, bytes]:
    """The bytes that are hashed before and after the payload."""
    # Few requests have headers.
    tail = canonical([dict(headers), draw])[1:] if headers else b"{},%d]" % draw
    return _head_of_key(provider, base_url, operation), b"," + tail


@functools.lru_cache(maxsize=256)
def _head_of_key(provider: str, base_url: str | None, operation: str) -> bytes:
    return canonical([SCHEMA_VERSION, provider, base_url, operation])[:-1] + b","
