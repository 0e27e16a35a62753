"""What a client decides once for all its calls, and what it decides where its user does not."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass

from ._keys import APIKey
from ._types import FinishReason

DEFAULT_MAX_CONCURRENT = 32
"""For what can pile up without end: batches and asynchronous calls."""

UNBOUNDED = sys.maxsize
"""For a thread that waits in a call. It is a limit that its owner has set: of a hundred clients, each in a
thread of its own, all shall be served at once. A provider that refuses still lowers the window."""

KEPT_BY_DEFAULT: tuple[FinishReason, ...] = ("stop", "tool_calls")
"""The finish reasons of answers that the cache keeps and serves unless a client says otherwise."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What a client decides once for all its calls."""

    timeout: float
    max_retries: int
    cache: str
    kept: frozenset[str]
    """Finish reasons of the answers that the cache keeps; "empty" for those that say and call nothing."""
    transport: str | None
    """None for that of the route."""
    keys: Mapping[str, APIKey]
