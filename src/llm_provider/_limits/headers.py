"""What a provider's answers say about its limits, and what that means a moment later.

`headroom` reads the headers of a success or a failure; `Level` carries the newest of them forward in time.
Retry-After and Gemini's RetryInfo, which say how long to wait, are read in `_retry`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

_NUMBER = re.compile(r"\d{1,15}(\.\d{1,9})?", re.ASCII)
_DURATION = re.compile(r"(?=\d)(?:(\d{1,6})h)?(?:(\d{1,6})m(?!s))?(?:(\d{1,9}(?:\.\d{1,9})?)s)?", re.ASCII)
_MILLISECONDS = re.compile(r"(\d{1,12}(?:\.\d{1,9})?)ms", re.ASCII)


class _Names(NamedTuple):
    """The headers of one limit."""

    limit: str
    remaining: str
    reset: str


def _names(pattern: str) -> _Names:
    return _Names(*(pattern.format(name) for name in _Names._fields))


_REQUESTS = tuple(
    map(_names, ("x-ratelimit-{}-requests", "anthropic-ratelimit-requests-{}", "x-ratelimit-{}"))
)
_TOKENS = tuple(map(_names, ("x-ratelimit-{}-tokens", "anthropic-ratelimit-tokens-{}")))

_LONG_RESET = 10.0
"""Seconds. A shorter reset is too coarse to compute a rate from: some are rounded to whole seconds."""
_PRUDENCE = 0.995
"""Of the rate that is told: two clocks are never quite equally fast."""
_SPAN = 10
"""Requests between two checks of the headers against what was sent: fewer prove little, as remaining counts
are whole numbers and costs are estimates."""
_JUMP = 1.3
"""A limit does not change by 30 % within `_JUMP_SPAN` seconds: such headers are of several scopes."""
_JUMP_SPAN = 5.0


@dataclass(frozen=True, slots=True)
class Allowance:
    """What is left of one limit, in requests or in tokens."""

    rate: float
    """Refilled per second."""
    remaining: float


@dataclass(frozen=True, slots=True)
class Headroom:
    """What the headers of one answer say; None where they say nothing."""

    requests: Allowance | None = None
    tokens: Allowance | None = None


def headroom(headers: Mapping[str, str]) -> Headroom | None:
    """Read rate-limit headers, whatever the provider; None if there are none.

    Args:
        headers: Names in lower case, or a mapping that does not mind.

    Understood are `x-ratelimit-{limit,remaining,reset}-{requests,tokens}` (OpenAI and who follows it),
    `anthropic-ratelimit-{requests,tokens}-{limit,remaining}`, and `x-ratelimit-{limit,remaining,reset}`
    (Together). Limits are per minute unless the time to their reset shows a longer period, as with Groq's
    requests per day. What is not a plain non-negative ASCII number counts as absent.

    >>> headroom({"x-ratelimit-limit-requests": "600", "x-ratelimit-remaining-requests": "599"})
    Headroom(requests=Allowance(rate=10.0, remaining=599.0), tokens=None)
    >>> headroom({"x-ratelimit-limit-requests": "many"}) is None
    True
    """
    requests, tokens = _first(headers, _REQUESTS), _first(headers, _TOKENS)
    return None if requests is None and tokens is None else Headroom(requests, tokens)


def _first(headers: Mapping[str, str], families: Iterable[_Names]) -> Allowance | None:
    for names in families:
        # Most answers have none of them, and this is looked for in each.
        if names.limit in headers and (allowance := _allowance(headers, names)) is not None:
            return allowance
    return None


def _allowance(headers: Mapping[str, str], names: _Names) -> Allowance | None:
    limit, remaining = _number(headers.get(names.limit)), _number(headers.get(names.remaining))
    if not limit or remaining is None:
        return None
    rate = limit / 60
    reset = duration(headers.get(names.reset))
    if reset is not None and reset > _LONG_RESET and remaining < limit:
        rate = min(rate, (limit - remaining) / reset)
    return Allowance(rate, remaining)


def _number(text: str | None) -> float | None:
    return float(text) if text is not None and _NUMBER.fullmatch(text) else None


def duration(text: str | None) -> float | None:
    """Seconds of "1s", "6m0s", "1h2m3.5s", "120ms" or a plain number of seconds; None for anything else.

    >>> duration("6m0.5s"), duration("17ms"), duration("3"), duration("soon")
    (360.5, 0.017, 3.0, None)
    """
    if text is None:
        return None
    if _NUMBER.fullmatch(text):
        return float(text)
    if match := _MILLISECONDS.fullmatch(text):
        return float(match[1]) / 1000
    if match := _DURATION.fullmatch(text):
        hours, minutes, seconds = (float(group) if group else 0.0 for group in match.groups())
        return hours * 3600 + minutes * 60 + seconds
    return None


class Level:
    """What is left of one limit now, judged by the newest header and by what was sent since.

    `used` is whatever the limit counts, summed over everything sent: requests, or tokens.

    >>> level = Level()
    >>> level.read(at=0.0, used=1.0, allowance=Allowance(rate=10.0, remaining=5.0))
    True
    >>> level.ready_at(now=0.0, used=5.0, cost=1.0, margin=1.0)  # 1 left: another in a tenth of a second
    0.10050251256281408
    """

    __slots__ = ("_anchor", "_at", "_most", "_rate", "_reads", "_remaining", "_used")

    def __init__(self) -> None:
        self._used = -1.0
        self._at = self._remaining = self._most = 0.0
        self._rate = math.inf
        self._anchor = (0.0, 0.0, 0.0)
        self._reads = 0

    def read(self, *, at: float, used: float, allowance: Allowance) -> bool:
        """Take in a header of a request that was sent `at`, `used` counting itself too.

        Returns:
            Whether it fits what was known: a jumping limit, or a level that what was sent did not lower, is
            some other scope's.
        """
        if used <= self._used:
            return True
        rate = allowance.rate * _PRUDENCE
        fits = True
        if self._used >= 0:
            jump = max(rate, self._rate) / max(min(rate, self._rate), 1e-9)
            fits = jump < _JUMP or at - self._at > _JUMP_SPAN
            self._reads += 1
        if self._used < 0 or self._reads >= _SPAN:
            if self._reads:
                since, before, remaining = self._anchor
                # Half of what was sent: costs in tokens are estimates.
                most = remaining + (at - since) * self._rate - 0.5 * (used - before) + 2
                fits = fits and allowance.remaining <= most
            self._anchor, self._reads = (at, used, allowance.remaining), 0
        self._at, self._used, self._rate, self._remaining = at, used, rate, allowance.remaining
        self._most = max(self._most, allowance.remaining)
        return fits

    def ready_at(self, now: float, used: float, cost: float, margin: float) -> float:
        """When there is enough for `cost` with `margin` to spare; `now` where nothing is known."""
        if self._used < 0:
            return now
        level = self._remaining + (now - self._at) * self._rate - (used - self._used)
        # No more is saved up, or can be asked for, than the limit was seen to hold, the request that showed
        # it included.
        overflow = level - (self._most + 1.2 * cost)
        if overflow > 0:
            self._remaining -= overflow
            level -= overflow
        needed = min(cost + margin, max(cost, self._most) + 0.2 * cost)
        missing = needed - level
        return now + missing / max(self._rate, 1e-9) if missing > 1e-6 else now
