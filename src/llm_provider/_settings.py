"""What a client decides once for all its calls, and what it decides where its user does not."""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from ._keys import APIKey
from ._types import FinishReason

RateControl = Literal["adaptive", "aimd"]
"""How a scope's limit is found: by the controller of `_control`, or by additive increase and multiplicative
decrease alone, the baseline that it is compared with."""

_MOST = 1000
"""Requests under way where nobody has said: 6,000 a minute with answers of up to ten seconds. The rate
control finds what a provider takes; this bounds connections, and what a server without limits is asked to do
at once."""
_SHARE_OF_FILES = 0.75
"""Of the files that a process may open, which is 1,024 on most Linux systems and 256 on macOS: each request
under way is a connection, and the rest of the program has files too."""
_AT_ONCE = 8
"""Requests sent to an unknown provider before the first answer, where nobody has asked for more. Each answer
lets two more go, so after five round trips it is 256, and a limit of ten a second has refused a few."""


class Concurrency(NamedTuple):
    """How many requests may be under way."""

    most: int
    at_once: int
    """Before anything is known of the provider's limits."""


UNBOUNDED = Concurrency(sys.maxsize, sys.maxsize)
"""For a thread that waits in a call. It is a limit that its owner has set: of a hundred clients, each in a
thread of its own, all shall be served at once. A provider that refuses still slows them down."""


@functools.cache
def unasked() -> Concurrency:
    """For batches and asynchronous calls, which can pile up without end, where the user has not said."""
    return Concurrency(int(min(_MOST, max(32, _SHARE_OF_FILES * _open_files()))), _AT_ONCE)


def _open_files() -> float:
    """How many files this process may open."""
    try:
        import resource
    except ImportError:  # Windows, whose sockets are not files
        return math.inf
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return math.inf if most == resource.RLIM_INFINITY else most


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
