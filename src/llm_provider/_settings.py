"""What a client decides once for all its calls, and what it decides where its user does not."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from ._keys import APIKey
from ._types import FinishReason

RateControl = Literal["adaptive", "aimd"]
"""How a scope's limit is found: by the controller of `_control`, or by additive increase and multiplicative
decrease alone, the baseline that it is compared with."""

DEFAULT_MAX_CONCURRENT = 512
"""For what can pile up without end: batches and asynchronous calls. The rate control finds what a provider
takes; this only keeps connections below the 1,024 files that a process may open on most systems."""

_AT_ONCE = 16
"""Requests sent to an unknown provider before the first answer, where nobody has asked for more. Each answer
lets two more go, so four round trips later it is 256, and a limit of ten a second has refused a dozen."""


class Concurrency(NamedTuple):
    """How many requests may be under way."""

    most: int
    at_once: int
    """Before anything is known of the provider's limits."""


UNBOUNDED = Concurrency(sys.maxsize, sys.maxsize)
"""For a thread that waits in a call. It is a limit that its owner has set: of a hundred clients, each in a
thread of its own, all shall be served at once. A provider that refuses still slows them down."""

UNASKED = Concurrency(DEFAULT_MAX_CONCURRENT, _AT_ONCE)
"""Where the user has not said."""

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
    rate_control: RateControl
    transport: str | None
    """None for that of the route."""
    keys: Mapping[str, APIKey]
