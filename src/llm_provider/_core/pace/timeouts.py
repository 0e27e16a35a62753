"""How long a call may take: the `Timeouts` of one attempt, the `Deadline` and `Patience` of the whole call.

`attempt` enforces the timeouts, `engine` the deadline and `scopes` the patience.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, fields

from ..errors import RequestError, cite
from ..json_values import plain_number
from ..runtime import clock


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
