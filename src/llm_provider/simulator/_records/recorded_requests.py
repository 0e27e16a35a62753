"""The last requests, kept as received and converted to a readable form only on demand."""

from __future__ import annotations

import json
import re
from collections import deque
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Record", "RecordedRequest", "Recorder", "fingerprint", "redact"]

REQUESTS_KEPT = 10_000
BYTES_KEPT = 256 * 1024 * 1024
SECRET_HEADERS = frozenset(
    {"authorization", "x-api-key", "x-goog-api-key", "api-key", "proxy-authorization", "cookie"}
)

_KEY_IN_QUERY = re.compile(r"([?&]key=)([^&]*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRequest:
    """A request as the simulator saw it.

    Attributes:
        provider: the simulated provider; ``model``: the requested model.
        path: path with query string.
        body: the parsed JSON body; None if it was not JSON.
        headers: names in lower case; a value that holds a key becomes ``sha256:`` and 8 hexadecimal digits.
        time: the time of arrival, in seconds since 1970.
        status: the status of the answer; 0 without an answer (yet).
        disconnected: whether the client disconnected before the answer was complete.
        http_version: ``"1.1"`` or ``"2"``.
    """

    provider: str
    model: str
    path: str
    body: Any
    headers: Mapping[str, str]
    time: float
    status: int
    disconnected: bool
    http_version: str


@dataclass(slots=True)
class Record:
    """A request in progress or completed, in the form that is cheapest to keep."""

    provider: str
    path: str
    headers: list[tuple[bytes, bytes]]
    time: float
    http_version: str
    body: bytes = b""
    model: str = ""
    status: int = 0
    disconnected: bool = False

    def to_json(self) -> dict[str, Any]:
        """The fields of :class:`RecordedRequest`, with fingerprints in place of secrets."""
        try:
            body = json.loads(self.body)
        except (ValueError, RecursionError):
            body = None
        path = _KEY_IN_QUERY.sub(lambda key: key[1] + fingerprint(key[2]), self.path)
        return {**asdict(self), "path": path, "body": body, "headers": redact(self.headers)}


class Recorder:
    """The last requests, bounded in number and in bytes."""

    def __init__(self, requests_kept: int = REQUESTS_KEPT, bytes_kept: int = BYTES_KEPT) -> None:
        self._records: deque[Record] = deque()
        self._requests_kept = requests_kept
        self._bytes_kept = bytes_kept
        self._bytes = 0

    def add(self, record: Record) -> None:
        """Keep a record whose body is complete, and drop the oldest records beyond the bounds."""
        self._records.append(record)
        self._bytes += len(record.body)
        while len(self._records) > self._requests_kept or (
            self._bytes > self._bytes_kept and len(self._records) > 1
        ):
            self._bytes -= len(self._records.popleft().body)

    def clear(self) -> None:
        """Drop all records."""
        self._records.clear()
        self._bytes = 0

    def to_json(self, provider: str | None = None) -> list[dict[str, Any]]:
        """The records of one provider, or of all, newest last."""
        return [record.to_json() for record in self._records if provider in (None, record.provider)]


def fingerprint(secret: str) -> str:
    """A short hash of a secret: it tells two secrets apart, and cannot be used as a key.

    >>> fingerprint("sk-example")
    'sha256:f2d4b279'
    """
    return "sha256:" + sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()[:8]


def redact(headers: list[tuple[bytes, bytes]]) -> dict[str, str]:
    """Headers as text with lower-case names; API keys (without ``Bearer``) become fingerprints."""
    readable: dict[str, str] = {}
    for raw_name, raw_value in headers:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        if name in SECRET_HEADERS:
            value = fingerprint(value.removeprefix("Bearer "))
        readable[name] = value
    return readable
