"""Decides which failures are retried and after how many seconds; the controllers do not decide this."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .. import errors
from ..runtime import clock
from .timeouts import Deadline

if TYPE_CHECKING:
    import datetime

    from ..runtime.randomness import Random

DEFAULT_MAX_RETRIES = 10
"""Most requests after the first one. The SDKs' default of 2 suits one interactive call. A provider that
refuses 30 % of all requests at random refuses one call in 600,000 eleven times in a row, and full jitter
keeps additional retries cheap."""

RETRIES_OF_SDKS = 2
"""Retries that a server can expect of the SDKs, whose default this is."""

REFUSED_IN_TURN = 3
"""Refusals of one call after which it waits by itself too. The pace of the rate control, which may be ten
requests a second, would use its retries up while the provider is busy for a minute."""

LONGEST_RETRY_AFTER = 120.0
"""Seconds. If a provider asks for a longer wait, the call fails at once."""

ORDERLY_END = "GOAWAY"
"""The `code` of requests whose connection was closed in order by the server. HTTP/2 servers do this from time
to time, with hundreds of requests on a connection. The retries of these requests are not taken from a
budget."""

_ANSWERS_PER_RETRY = 10
"""Answers that earn one retry, as in gRPC's throttle and Finagle's retry budget. If one request in ten fails,
all are retried. A provider that is down does not get a multiple of its load."""

_FIRST_RETRIES = 10
"""Retries at the start: as many as one call uses, so a script's first call can always be retried."""

_RETRIES_PER_SECOND = 10.0
"""Retries that time alone allows, as in Finagle's retry budget. So a budget that is spent delays retries."""

_MOST_RETRIES_SAVED = 1000
"""Most retries that can be saved. If all requests in flight fail at once, for example because a server
restarts, each of them can be retried."""

_BASE_DELAY = 0.5
_LONGEST_DELAY = 30.0
EARLIEST_INSTANT = 1e9
"""Seconds since 1970 from which on a number is an instant, 2001 at the earliest, and no duration."""
_SECONDS = re.compile(r"\d{1,13}(\.\d{1,9})?", re.ASCII)
_DURATION = re.compile(r"(\d{1,10}(?:\.\d{1,9})?)s", re.ASCII)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether to retry, after how many seconds, and the `reason` of an end that nothing else explains."""

    retry: bool
    delay: float = 0.0
    reason: str = ""
    too_late: bool = field(default=False, repr=False)
    """Whether a call with another deadline would send it again."""


FINAL = Verdict(retry=False)
"""No retry, for a reason that the error itself tells."""


class RetryBudget:
    """Slows the retries of a scope after failures other than congestion.

    A budget starts with ten retries. Every answer earns a tenth of one, and every second earns ten, up to a
    maximum. A retry that finds none waits until it is earned. So a provider in trouble gets little more than
    a tenth more requests than calls, however many retries each call may use.
    """

    def __init__(self) -> None:
        self._tenths: float = _FIRST_RETRIES * _ANSWERS_PER_RETRY
        """Tenths of retries; below 0 while earlier retries wait for theirs."""
        self._at = math.inf

    def earn(self) -> None:
        """Earn a tenth of a retry with an answer."""
        if self._tenths < _MOST_RETRIES_SAVED * _ANSWERS_PER_RETRY:
            self._tenths += 1

    def spend(self, now: float) -> float:
        """Take one retry at `now`, seconds of a monotonic clock. Returns the seconds that it must wait."""
        per_second = _RETRIES_PER_SECOND * _ANSWERS_PER_RETRY
        most = _FIRST_RETRIES * _ANSWERS_PER_RETRY
        if self._tenths < most:
            self._tenths = min(most, self._tenths + max(0.0, now - self._at) * per_second)
        self._at = now
        self._tenths -= _ANSWERS_PER_RETRY
        return max(0.0, -self._tenths / per_second)


def judge(
    error: errors.LLMError,
    *,
    attempts: int,
    max_retries: int,
    random_source: Random,
    budget: RetryBudget,
    now: float,
    deadline: Deadline | None = None,
    seen_by_user: bool = False,
    elsewhere: bool = False,
    down: bool = False,
) -> Verdict:
    """Decide whether a failed attempt is retried.

    `attempts` counts the requests sent so far, including the failed one, that count against `max_retries`. No
    retry is taken from `budget` after congestion, where the rate control slows all calls down, after a
    failure to connect, and after the orderly end of a connection. A wait that exceeds the deadline does not
    begin. A stream that the user has seen a part of cannot begin again. `elsewhere` says that another API
    key may serve the call at once, `down` that the retry waits until the scope is up.

    A malformed answer is retried only once, because it may have been billed. The wait is the provider's
    Retry-After. Without one, it is full jitter: uniform from 0 to 0.5 s doubled per attempt, 30 s at most.
    """
    allowed = min(max_retries, 1) if isinstance(error, errors.APIResponseValidationError) else max_retries
    if attempts > min(allowed, vars(error).get("_most_retries", allowed)) or seen_by_user:
        return FINAL
    if elsewhere:
        return Verdict(retry=True)
    if not error.retryable:
        return FINAL
    if down:
        return Verdict(retry=True)
    delay, why = error.retry_after, "not sent again"
    if delay is None:
        longest = min(_BASE_DELAY * 2.0 ** min(attempts - 1, 16), _LONGEST_DELAY)
        delay = random_source.uniform(0.0, longest)
    else:
        why = f"asked to wait {delay:.0f} s"
        if delay > LONGEST_RETRY_AFTER:
            return Verdict(retry=False, reason=f"{why}, which is too long to wait for")
    if not (is_congestion(error) or error.code == ORDERLY_END or is_free(error)):
        delay = max(delay, budget.spend(now))
    if deadline is not None and delay >= deadline.left:
        left = f"the deadline of {deadline.allowed:g} s is {max(deadline.left, 0):.1f} s away"
        return Verdict(retry=False, reason=f"{why}: {left}", too_late=True)
    return Verdict(retry=True, delay=delay)


_BUSY = (429, 503, 529)
_NEVER = (errors.AuthenticationError, errors.PermissionDeniedError, errors.QuotaExceededError)


def heed_should_retry(error: errors.LLMError, headers: Mapping[str, str]) -> None:
    """Heed `x-should-retry`, by which a server overrules the rules for one request.

    "false" ends its retries, but not after a refusal that says nothing about the account: the rate control
    waits for those. "true" allows at most `RETRIES_OF_SDKS`, and none with a wrong key or an empty account.
    """
    advice = headers.get("x-should-retry") or headers.get("llm_provider-x-should-retry", "")
    if advice == "false" and error.retryable and error.status not in _BUSY:
        end_retries(error)
    elif advice == "true" and not (
        error.retryable or isinstance(error, _NEVER) or error.status in (401, 403)
    ):
        error.retryable = True
        vars(error)["_most_retries"] = RETRIES_OF_SDKS


def end_retries(error: errors.LLMError) -> None:
    """End the retries of one request. Its failure may be a part of an outage all the same."""
    error.retryable = False
    vars(error)["_ended"] = True


def is_congestion(error: errors.LLMError) -> bool:
    """Whether a failure means that too many requests were sent.

    A refusal with too long a wait says nothing about a rate, and later calls get the same one at once.
    """
    is_refusal = isinstance(error, (errors.RateLimitError, errors.OverloadedError))
    return is_refusal and (error.retry_after or 0.0) <= LONGEST_RETRY_AFTER


def is_free(error: errors.LLMError) -> bool:
    """Whether no server has received the request."""
    return isinstance(error, (errors.APIConnectionError, errors.APITimeoutError)) and not error.maybe_billed


def retry_after(headers: Mapping[str, str], *, now: datetime.datetime | None = None) -> float | None:
    """The longer wait of `retry-after-ms` and `retry-after` (seconds or an HTTP date; RFC 9110 §10.2.3).

    Azure sends a rounded number beside the exact one, which may be 0.

    Only ASCII digits are accepted. `float` also accepts `nan`, `inf`, `1e400`, a sign and other scripts'
    digits, which count as absent here. A date in the past is 0. litellm's proxy passes the provider's header
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
        if moment < EARLIEST_INSTANT:
            return moment
        moment = moment if moment < 100 * EARLIEST_INSTANT else moment / 1000
    else:
        moment = _moment(text)
    if moment is None:
        return None
    present = (_moment(headers.get("date", "")) or 0.0, clock.time()) if now is None else (now.timestamp(),)
    return max(0.0, moment - max(present))


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


def retry_delay(text: object) -> float | None:
    """The seconds of a protobuf duration such as Gemini's `RetryInfo.retryDelay`, "27.39s"."""
    match = _DURATION.fullmatch(text) if isinstance(text, str) else None
    return float(match.group(1)) if match else None
