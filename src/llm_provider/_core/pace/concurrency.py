"""How many requests may be in flight: the user's limit, or the default. And which models count together."""

from __future__ import annotations

import functools
import math
import os
import re
import sys
import weakref
from typing import TYPE_CHECKING, NamedTuple

from ..errors import RequestError, cite
from ..json_values import plain_number

if TYPE_CHECKING:
    import asyncio

_MOST = 1000
"""Default number of requests in flight: 6,000 per minute with answers of up to ten seconds. The rate control
finds the provider's limits. This number bounds the connections, and the load on a server without limits."""
_SHARE_OF_FILES = 0.75
"""Share of the files that a process may open: 1,024 on most Linux systems and 256 on macOS. Each request in
flight has a connection, and the rest of the program opens files too."""
_FILES_OF_OTHERS = 128
"""Files that are left for the rest of the program where it may open few: the cache has 48 and an SDK some."""
_LEAST = 32
_VERSION = re.compile(r"(-\d{4}-\d{2}-\d{2}|-\d{8}|-latest|@\d{8})$")
"""The suffix of a dated snapshot. Providers limit a snapshot together with its model."""
_AT_ONCE = 8
"""Default number of requests sent before the first answer. Each answer allows two more, so 256 are in flight
after five round trips. A limit of ten per second has refused a few of them."""


class Concurrency(NamedTuple):
    """How many requests may be in flight."""

    most: int
    at_once: int
    """Limit as long as the provider's limits are unknown."""


UNBOUNDED = Concurrency(sys.maxsize, sys.maxsize)
"""For a thread that waits in a synchronous call. The number of threads is a limit that the user has set: a
hundred threads send a hundred requests at once. Refusals of the provider still slow them down."""


@functools.cache
def default_concurrency() -> Concurrency:
    """The default for batches and asynchronous calls, whose number is not bounded by threads."""
    return Concurrency(int(min(_MOST, max(_LEAST, _SHARE_OF_FILES * _open_files()))), _AT_ONCE)


def most_connections() -> float:
    """How many connections this process may have, so that the rest of the program can open files."""
    files = _open_files()
    return max(_LEAST, min(_SHARE_OF_FILES * files, files - _FILES_OF_OTHERS))


class InFlight:
    """The requests in flight on an event loop, of all clients: each has a connection, and so a file."""

    def __init__(self) -> None:
        self.count, self.most = 0, most_connections()


IN_FLIGHT: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, InFlight] = weakref.WeakKeyDictionary()


def _open_files() -> float:
    """How many files this process may open."""
    if sys.platform == "win32":  # where sockets are not files
        return math.inf
    import resource

    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return math.inf if most == resource.RLIM_INFINITY else most


def concurrency(max_concurrent: int | None) -> Concurrency | None:
    """The limit that `max_concurrent` sets, which holds from the first request on; None without one."""
    if max_concurrent is None:
        return None
    most = plain_number(max_concurrent)
    if not isinstance(most, int) or most < 1:
        raise RequestError(f"max_concurrent must be an int of at least 1, not {cite(max_concurrent)}")
    return Concurrency(most, most)


def concurrency_of_environment() -> Concurrency | None:
    """The limit that `LLM_PROVIDER_MAX_CONCURRENT` sets, if it does; a `RequestError` if it is no number."""
    text = os.environ.get("LLM_PROVIDER_MAX_CONCURRENT", "").strip()
    if not text:
        return None
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise RequestError(f"LLM_PROVIDER_MAX_CONCURRENT must be an int of at least 1, not {text!r}")
    return concurrency(int(text))


@functools.lru_cache(maxsize=1024)
def group_of(model: str) -> str:
    """The name of the model that shares its limits with this one: its own, without the date of a snapshot.

    >>> group_of("gpt-5.4-2026-03-05"), group_of("claude-opus-4-5-20251101"), group_of("gpt-5.4-mini")
    ('gpt-5.4', 'claude-opus-4-5', 'gpt-5.4-mini')
    """
    return _VERSION.sub("", model)
