"""A request to a batch or file endpoint, and its reply."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..formats import anthropic, gemini, openai_chat
from ..formats.wire_format import Problem

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Call", "Reply", "refuse"]


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


def refuse(call: Call, status: int, message: str, **facts: Any) -> Reply:
    """An error in the provider's own form."""
    form = {"anthropic": anthropic, "gemini": gemini}.get(call.provider, openai_chat)
    code, body = form.error(Problem(status=status, message=message, **facts), "req_batch")
    return Reply(code, body)
