"""Reads rate-limit headers and waits, and predicts from them how much of a limit is left later.

`headroom` reads the headers of a success or a failure. `Level` projects the newest of them forward in time.
`retry_after`, `wait_for_reset` and `wait_in_words` read the wait that a refusal asks for.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from ..runtime import clock
from .failure_table import words_in
from .failures import LONGEST_RETRY_AFTER
from .state import Stored

if TYPE_CHECKING:
    import datetime

_EARLIEST_INSTANT = 1e9
"""Seconds since 1970 from which on a number is an instant, 2001 at the earliest, and no duration."""

_SECONDS = re.compile(r"\d{1,13}(\.\d{1,9})?", re.ASCII)
_NUMBER = re.compile(r"\d{1,15}(\.\d{1,9})?", re.ASCII)
_DURATION = re.compile(
    r"(?=\d)(?:(\d{1,4})d)?(?:(\d{1,6})h)?(?:(\d{1,6})m(?!s))?(?:(\d{1,9}(?:\.\d{1,9})?)s)?", re.ASCII
)
_PROTOBUF = re.compile(r"(\d{1,10}(?:\.\d{1,9})?)s", re.ASCII)
_MILLISECONDS = re.compile(r"(\d{1,12}(?:\.\d{1,9})?)ms", re.ASCII)


class _Names(NamedTuple):
    """The names of one limit's headers."""

    limit: str
    remaining: str
    reset: str


def _names(*patterns: str) -> list[_Names]:
    return [_Names(*(pattern.format(name) for name in _Names._fields)) for pattern in patterns]


_REQUESTS = _names(
    "x-ratelimit-{}-requests",
    "anthropic-ratelimit-requests-{}",
    "x-ratelimit-{}-req-minute",
    "x-ratelimit-{}",
)
_TOKENS = _names(
    "x-ratelimit-{}-tokens", "anthropic-ratelimit-tokens-{}", "x-ratelimit-{}-tokens-minute",
    "x-ratelimitbysize-{}-minute",
)  # fmt: skip
LIMIT_HEADERS = tuple(names.limit for names in (*_REQUESTS, *_TOKENS))

_LONG_RESET = 10.0
"""Seconds. A shorter reset is too coarse to compute a rate from, as some are rounded to full seconds."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """The unused part of one limit, in requests or in tokens."""

    rate: float
    """Refill per second."""
    remaining: float


@dataclass(frozen=True, slots=True)
class Headroom:
    """The limits that the headers of one answer tell; None for a limit that they do not tell."""

    requests: Allowance | None = None
    tokens: Allowance | None = None


def headroom(headers: Mapping[str, str]) -> Headroom | None:
    """Read the rate-limit headers of any provider, with names in lower case; None if there are none.

    These headers are understood: `x-ratelimit-{limit,remaining,reset}-{requests,tokens}` (OpenAI and
    compatible hosts), `anthropic-ratelimit-{requests,tokens}-{limit,remaining}`,
    `x-ratelimit-{limit,remaining}-{req,tokens}-minute` and, of tokens, the older
    `x-ratelimitbysize-{limit,remaining}-minute` (Mistral), and `x-ratelimit-{limit,remaining,reset}`
    (Together). Limits are per minute unless the time to their reset shows a longer period. A limit that is
    reset later than after `LONGEST_RETRY_AFTER` seconds, such as a day's, counts as absent: nobody waits for
    it before it refuses. So does a value that is not a plain non-negative ASCII number.

    >>> headroom({"x-ratelimit-limit-requests": "600", "x-ratelimit-remaining-requests": "599"})
    Headroom(requests=Allowance(rate=10.0, remaining=599.0), tokens=None)
    >>> headroom({"x-ratelimit-limit-requests": "many"}) is None
    True
    """
    requests, tokens = _first(headers, _REQUESTS), _first(headers, _TOKENS)
    return None if requests is None and tokens is None else Headroom(requests, tokens)


def _first(headers: Mapping[str, str], families: Iterable[_Names]) -> Allowance | None:
    return next(filter(None, (_allowance(headers, names) for names in families)), None)


def _allowance(headers: Mapping[str, str], names: _Names) -> Allowance | None:
    limit, remaining = _number(headers.get(names.limit)), _number(headers.get(names.remaining))
    if not limit or remaining is None:
        return None
    rate = limit / 60
    reset, _ = _seconds_to_reset(headers, names.reset)
    if reset is None or reset <= _LONG_RESET:
        return Allowance(rate, remaining)
    if reset > LONGEST_RETRY_AFTER:
        return None
    # A near instant is too coarse: the clocks may differ by some seconds.
    if remaining < limit and duration(headers.get(names.reset)) == reset:
        rate = min(rate, (limit - remaining) / reset)
    return Allowance(rate, remaining)


def _number(text: str | None) -> float | None:
    return float(text) if text is not None and _NUMBER.fullmatch(text) else None


def _seconds_to_reset(headers: Mapping[str, str], name: str) -> tuple[float | None, bool]:
    """The seconds until a limit is reset, and whether the header has an instant and no duration."""
    text = headers.get(name)
    seconds = duration(text)
    if text is None or (seconds is not None and seconds < _EARLIEST_INSTANT):
        return seconds, False
    return seconds_until(text, headers), seconds is not None


_SPENT = re.compile(r"(?=.*ratelimit).*remaining.*")


def wait_for_reset(headers: Mapping[str, str]) -> float | None:
    """The wait that a refusal without Retry-After asks for by the headers of a limit that is spent.

    A number since 1970 is the end of a window, before which nothing is served. Other resets count if they are
    far: a near one is the time until a bucket is full, and the next request needs only a part of it.

    >>> wait_for_reset({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "6h12m0s"})
    22320.0
    >>> wait_for_reset({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "20s"}) is None
    True
    """
    spent = (name for name, value in headers.items() if _SPENT.fullmatch(name) and _number(value) == 0)
    resets = (_seconds_to_reset(headers, name.replace("remaining", "reset")) for name in spent)
    waits = (left for left, is_window in resets if left and (is_window or left > LONGEST_RETRY_AFTER))
    return max(waits, default=None)


def retry_delay(text: object) -> float | None:
    """The seconds of a protobuf duration such as Gemini's `RetryInfo.retryDelay`, "27.39s"."""
    match = _PROTOBUF.fullmatch(text) if isinstance(text, str) else None
    return float(match[1]) if match else None


def duration(text: str | None) -> float | None:
    """The seconds of "1s", "6m0s", "1d2h3m4.5s", "120ms" or a plain number; None for any other text.

    >>> duration("6m0.5s"), duration("17ms"), duration("3"), duration("later")
    (360.5, 0.017, 3.0, None)
    """
    if text is None:
        return None
    if _NUMBER.fullmatch(text):
        return float(text)
    if match := _MILLISECONDS.fullmatch(text):
        return float(match[1]) / 1000
    if match := _DURATION.fullmatch(text):
        days, hours, minutes, seconds = (float(group) if group else 0.0 for group in match.groups())
        return days * 86400 + hours * 3600 + minutes * 60 + seconds
    return None


_UNIT = r"(?: ?(ms|[dhms])(?:ays?|ours?|in(?:ute)?s?|ec(?:ond)?s?)?(?![a-z])[ ,]*)"
_IN_WORDS = re.compile(rf"\b(?:try again|retry) (?:in|after) ((?:\d+(?:\.\d+)?{_UNIT})+)", re.ASCII)


def wait_in_words(message: str) -> float | None:
    """The seconds of "Please try again in 7m12s", which OpenAI and Groq write into a refusal's message.

    >>> wait_in_words("Rate limit reached for gpt-4.1. Please try again in 6s. Visit https://...")
    6.0
    >>> wait_in_words("Please retry after 1 minute, 30 seconds.")
    90.0
    """
    match = _IN_WORDS.search(words_in(message))
    return None if match is None else duration(re.sub(_UNIT, r"\1", match[1]))


class Level(Stored):
    """Predicts the unused part of one limit from the newest header and the requests sent since then.

    `used` is what the limit has counted for all requests sent, `amount` what it will count for the next.
    """

    def __init__(self) -> None:
        self._used = -1.0
        self._at = self._remaining = self._most = 0.0
        self._rate = math.inf

    def read(self, *, at: float, used: float, allowance: Allowance) -> None:
        """Read a header of a request sent at `at`, unless a later one was read. `used` counts this one."""
        if used > self._used:
            self._at, self._used, self._rate, self._remaining = at, used, allowance.rate, allowance.remaining
            self._most = max(self._most, allowance.remaining)

    def ready_at(self, now: float, used: float, amount: float, margin: float) -> float:
        """The time at which `amount` and a margin are left; `now` if no header was read."""
        if self._used < 0:
            return now
        level = self._remaining + (now - self._at) * self._rate - (used - self._used)
        # The limit saves up no more than the headers have shown, and no more can be required. The request
        # that showed it counts too.
        overflow = level - (self._most + 1.2 * amount)
        if overflow > 0:
            self._remaining -= overflow
            level -= overflow
        needed = min(amount + margin, max(amount, self._most) + 0.2 * amount)
        missing = needed - level
        return now + missing / max(self._rate, 1e-9) if missing > 1e-6 else now


def retry_after(headers: Mapping[str, str], *, now: datetime.datetime | None = None) -> float | None:
    """The longer wait of `retry-after-ms` and `retry-after` (seconds or an HTTP date; RFC 9110 §10.2.3).

    Azure sends a rounded number beside the exact one, which may be 0.

    Only ASCII digits are accepted. `float` also accepts `nan`, `inf`, `1e400`, a sign and other scripts'
    digits, which count as absent. A date in the past is 0. litellm's proxy passes the provider's header
    on as `llm_provider-retry-after`.

    >>> retry_after({"retry-after-ms": "1500", "retry-after": "9"})
    9.0
    >>> retry_after({"retry-after": "nan"}) is None
    True
    """
    text = headers.get("retry-after-ms", "").strip()
    exact = float(text) / 1000 if _SECONDS.fullmatch(text) else None
    text = headers.get("retry-after") or headers.get("llm_provider-retry-after", "")
    rounded = seconds_until(text, headers, now)
    return max((wait for wait in (exact, rounded) if wait is not None), default=None)


def seconds_until(
    text: str, headers: Mapping[str, str], now: datetime.datetime | None = None
) -> float | None:
    """The seconds of a text that has them, or an instant: seconds or milliseconds since 1970, or a date.

    An instant is read by the server's clock, which its header `date` has. None for any other text.
    """
    text = text.strip()
    moment: float | None
    if _SECONDS.fullmatch(text):
        moment = float(text)
        if moment < _EARLIEST_INSTANT:
            return moment
        moment = moment if moment < 100 * _EARLIEST_INSTANT else moment / 1000
    else:
        moment = _moment(text)
    if moment is None:
        return None
    present = [clock.time(), _moment(headers.get("date", ""))] if now is None else [now.timestamp()]
    return max(0.0, moment - max(filter(None, present)))


def _moment(text: str) -> float | None:
    """The seconds since 1970 of an HTTP or ISO 8601 date, which is UTC without a zone; None for others."""
    if not text or not text.isascii() or len(text) > 40:
        return None
    import datetime
    import email.utils

    read = datetime.datetime.fromisoformat if text[0].isdigit() else email.utils.parsedate_to_datetime
    try:
        moment = read(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)).timestamp()
    except (ValueError, OverflowError, TypeError):
        return None
