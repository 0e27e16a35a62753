"""A request to a batch or file endpoint, and its reply."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ..formats import anthropic, gemini, openai_chat
from ..formats.wire_format import Problem

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..formats.wire_format import WireFormat

__all__ = ["Call", "Reply", "find_format", "refuse", "select_page", "select_page_after", "write_date"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A request. `path` has no name of a provider; `root` is scheme, host and that name."""

    provider: str
    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[bytes, bytes]
    key: str
    body: bytes
    root: str


@dataclass(slots=True)
class Reply:
    """Status, body and headers of an answer. A body that is not bytes is sent as JSON."""

    status: int
    body: bytes | dict[str, Any]
    content_type: bytes = b"application/json"
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)


def find_format(provider: str) -> WireFormat:
    """The format of a provider's conversations, whose errors its other endpoints send too."""
    formats: dict[str, WireFormat] = {"anthropic": anthropic, "gemini": gemini}
    return formats.get(provider, openai_chat)


def refuse(call: Call, status: int, message: str) -> Reply:
    """An error in the provider's own form."""
    return Reply(*find_format(call.provider).write_error(Problem(message, status=status), "req_batch"))


def select_page(call: Call, length: int) -> tuple[slice, dict[str, str]]:
    """The page of a list that a request to Gemini asks for, and the fields that lead to the next one."""
    start = int(call.query.get("pageToken") or 0)
    end = start + int(call.query.get("pageSize") or 50)
    return slice(start, end), {"nextPageToken": str(end)} if end < length else {}


def select_page_after(call: Call, parameter: str, names: Sequence[str]) -> slice:
    """The page behind the name in a parameter; an empty one behind an unknown name."""
    after, start = call.query.get(parameter), 0
    if after is not None:
        start = names.index(after) + 1 if after in names else len(names)
    return slice(start, start + int(call.query.get("limit") or 20))


def write_date(moment: float) -> str:
    """A Unix time in the form of RFC 3339.

    >>> write_date(0)
    '1970-01-01T00:00:00Z'
    """
    return datetime.fromtimestamp(moment, UTC).isoformat().replace("+00:00", "Z")
