"""A request to a batch or file endpoint, which may be a form with files, and its reply."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from ..formats import anthropic, gemini, openai_chat
from ..formats.wire_format import Problem

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..formats.wire_format import WireFormat

__all__ = ["Call", "Field", "Reply", "find_format", "parse_fields", "write_date"]

_BOUNDARY = re.compile(rb'boundary="?([^";]+)"?')
_NAME = re.compile(rb'[; ]name="([^"]*)"')
_FILE_NAME = re.compile(rb'filename="([^"]*)"')
_CONTENT_TYPE = re.compile(rb"content-type: *([^\r\n;]+)", re.IGNORECASE)


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

    def refuse(self, status: int, message: str) -> Reply:
        """An error in the provider's own form."""
        return Reply(*find_format(self.provider).write_error(Problem(message, status=status), "req_batch"))

    def select_page(self, length: int) -> tuple[slice, dict[str, str]]:
        """The page of a list that a request to Gemini asks for, and the fields that lead to the next one."""
        start = int(self.query.get("pageToken") or 0)
        end = start + int(self.query.get("pageSize") or 50)
        return slice(start, end), {"nextPageToken": str(end)} if end < length else {}

    def select_page_after(self, parameter: str, names: Sequence[str]) -> slice:
        """The page behind the name in a parameter; an empty one behind an unknown name."""
        after, start = self.query.get(parameter), 0
        if after is not None:
            start = names.index(after) + 1 if after in names else len(names)
        return slice(start, start + int(self.query.get("limit") or 20))


@dataclass(slots=True)
class Reply:
    """Status, body and headers of an answer. A body that is not bytes is sent as JSON."""

    status: int
    body: bytes | dict[str, Any]
    content_type: bytes = b"application/json"
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)


class Field(NamedTuple):
    """One field of a form."""

    content: bytes
    file_name: str = ""
    content_type: str = ""


def find_format(provider: str) -> WireFormat:
    """The format of a provider's conversations, whose errors its other endpoints send too."""
    formats: dict[str, WireFormat] = {"anthropic": anthropic, "gemini": gemini}
    return formats.get(provider, openai_chat)


def write_date(moment: float) -> str:
    """A Unix time in the form of RFC 3339.

    >>> write_date(0)
    '1970-01-01T00:00:00Z'
    """
    return datetime.fromtimestamp(moment, UTC).isoformat().replace("+00:00", "Z")


def parse_fields(content_type: bytes, body: bytes) -> dict[str, Field]:
    r"""The fields of a form by name; empty if the body is none.

    >>> body = b'--x\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n--x--\r\n'
    >>> parse_fields(b"multipart/form-data; boundary=x", body)["purpose"].content
    b'batch'
    """
    boundary = _BOUNDARY.search(content_type)
    if boundary is None:
        return {}
    fields = {}
    for part in (b"\r\n" + body).split(b"\r\n--" + boundary.group(1))[1:-1]:
        head, _, content = part.partition(b"\r\n\r\n")
        name, file, kind = _NAME.search(head), _FILE_NAME.search(head), _CONTENT_TYPE.search(head)
        if name is not None:
            fields[name.group(1).decode()] = Field(
                content,
                file.group(1).decode() if file else "",
                kind.group(1).decode().strip() if kind else "",
            )
    return fields
