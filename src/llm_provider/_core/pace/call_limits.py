"""The limits of a call: how long it may take, and how many requests may be in flight.

`attempt` enforces `Timeouts`, `engine` a `Deadline`, `scopes` `Patience` and `Concurrency`.
"""

from __future__ import annotations

import functools
import math
import os
import re
import sys
import weakref
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, NamedTuple

from ..errors import RequestError, cite
from ..json_values import plain_number
from ..runtime import clock

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


def seconds(name: str, value: object) -> float:
    """A number of seconds; `RequestError` if it is not a finite number above 0."""
    plain = plain_number(value)
    if plain is None or not 0 < plain <= sys.float_info.max:
        raise RequestError(f"{name} must be a positive number of seconds, not {cite(value)}{_remedy(value)}")
    return float(plain)


def _remedy(value: object) -> str:
    if hasattr(value, "total_seconds"):
        return f": write {value.total_seconds():g}, the seconds of it"
    if str(value) in ("inf", "Infinity"):
        return ": leave it out, or write a large number such as 86400"
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """Time limits for one attempt of a call, in seconds; a plain number in its place is `total`.

    A limit that is None is not set. A call takes it from its client, whose defaults are 600 for `total`, 15
    for `connect`, and no limit for the other two. The time in the queue does not count. Each limit raises
    `APITimeoutError`, whose `phase` is the name of the limit.

    Raises:
        RequestError: a value is not a finite number above 0.

    >>> Timeouts(first_byte=20, idle=5)
    Timeouts(connect=None, first_byte=20.0, idle=5.0, total=None)
    """

    connect: float | None = None
    """Until the connection is open: name look-up, TCP and TLS. An open connection is used at once."""
    first_byte: float | None = None
    """Until the answer or the first event of its stream begins, including the connection."""
    idle: float | None = None
    """From one piece of the answer, or one event of its stream, to the next."""
    total: float | None = None
    """From sending to the last byte."""

    def __post_init__(self) -> None:
        for name in _NAMES:
            value = getattr(self, name)
            if value is not None:
                # A frozen class forbids plain assignment; its generated `__init__` does the same.
                object.__setattr__(self, name, seconds(name, value))

    def over(self, others: Timeouts) -> Timeouts:
        """These limits, with the others where these are not set.

        >>> Timeouts(total=60).over(DEFAULT_TIMEOUTS)
        Timeouts(connect=15.0, first_byte=None, idle=None, total=60.0)
        """
        mine = {name: value for name in _NAMES if (value := getattr(self, name)) is not None}
        return Timeouts(**{name: getattr(others, name) for name in _NAMES} | mine)

    @property
    def watches(self) -> bool:
        """Whether a limit applies while the answer arrives."""
        return self.first_byte is not None or self.idle is not None


_NAMES = tuple(entry.name for entry in fields(Timeouts))

DEFAULT_TIMEOUT = 600.0
"""Seconds for one attempt, from sending to the last byte. The openai and anthropic SDKs have this default."""

DEFAULT_TIMEOUTS = Timeouts(connect=15.0, total=DEFAULT_TIMEOUT)
"""The SDKs' 5 s to connect are too short for a cold burst over TLS. The time until an answer begins has no
default, because reasoning models may be silent for minutes."""


DEFAULT_PATIENCE, DEFAULT_BATCH_PATIENCE = 60.0, 3600.0
"""Seconds that a single call and a batch wait for a provider that is down."""


def patience_seconds(name: str, value: object) -> float:
    """A number of seconds that may be 0 or infinite, checked.

    >>> patience_seconds("outage_patience", float("inf"))
    inf
    """
    plain = plain_number(value)
    if plain is None or not (0 <= plain <= sys.float_info.max or plain == float("inf")):
        raise RequestError(f"{name} must be a number of seconds, 0 or more, not {cite(value)}")
    return float(plain) if plain <= sys.float_info.max else float("inf")


@dataclass(slots=True, eq=False)
class Deadline:
    """The moment by which a call is answered or has failed."""

    allowed: float
    """Seconds, as the user gave them."""
    at: float
    """The moment on `clock.perf_counter`."""
    is_loading: bool = False
    """Whether the SDK is being loaded, or was when the moment passed."""

    @property
    def left(self) -> float:
        """Seconds until the moment; below 0 when it has passed."""
        return self.at - clock.perf_counter()


@dataclass(slots=True, eq=False)
class Patience:
    """How long the calls of a user's call or batch wait for a provider that is down."""

    seconds: float
    """From the later of the beginning of the outage and of the call or batch."""
    since: float
    """The monotonic time at which the call or batch began."""
    is_default: bool = False
    """Whether the user has set none."""


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
