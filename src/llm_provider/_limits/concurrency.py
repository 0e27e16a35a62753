"""How many requests may be under way at once: what the user says, and what is right where nobody does."""

from __future__ import annotations

import functools
import math
import os
import sys
from typing import NamedTuple

from .._errors import RequestError

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


def concurrency(max_concurrent: int | None) -> Concurrency | None:
    """What a `max_concurrent` asks for, which is all of it from the first request on.

    Raises:
        RequestError: it is not a whole number above zero.

    >>> concurrency(8)
    Concurrency(most=8, at_once=8)
    """
    if max_concurrent is None:
        return None
    if isinstance(max_concurrent, bool) or not isinstance(max_concurrent, int) or max_concurrent < 1:
        raise RequestError(f"max_concurrent must be an int of at least 1, not {max_concurrent!r}")
    return Concurrency(max_concurrent, max_concurrent)


def concurrency_of_environment() -> Concurrency | None:
    """What `LLM_PROVIDER_MAX_CONCURRENT` asks for, if it is set."""
    text = os.environ.get("LLM_PROVIDER_MAX_CONCURRENT", "").strip()
    if not text:
        return None
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise RequestError(f"LLM_PROVIDER_MAX_CONCURRENT must be an int of at least 1, not {text!r}")
    return concurrency(int(text))
