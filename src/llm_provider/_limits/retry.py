"""Which failures are sent again, and after how long. `_limits` only reacts to what is decided here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .._errors import APIResponseValidationError, LLMError, OverloadedError, RateLimitError
from .timeouts import Deadline

if TYPE_CHECKING:
    import datetime
    import random

DEFAULT_MAX_RETRIES = 6
"""Requests sent at most after the first. The SDKs' 2 is made for one interactive call; a batch that
finds its rate limit meets several rejections in a row, and full jitter keeps the extra ones cheap."""

LONGEST_RETRY_AFTER = 120.0
"""Seconds. A provider that asks for more than this is not waited for: the error is returned."""

ORDERLY_END = "GOAWAY"
"""The `code` of requests that were on a connection when its server ended it. Servers of HTTP/2 do so now and
then, with hundreds of requests on it, and these are sent again at nobody's expense."""

_ANSWERS_PER_RETRY = 10
"""A tenth, as gRPC's throttle and Finagle's budget have it: a provider that fails one call in ten is still
served in full, and one that is down does not meet several times its load."""

_FIRST_RETRIES = 10
"""More than one call may use by default, so that a script's first call can always be retried."""

_MOST_RETRIES_SAVED = 1000
"""About twice the requests that are under way at most by default: if all of them break at once, as when a
server starts anew, each can be sent again, and once more."""

_BUDGET_SPENT = (
    f"not sent again: too many calls fail, and retries are at most {_FIRST_RETRIES} and one for "
    f"every {_ANSWERS_PER_RETRY} answers"
)

_BASE_DELAY = 0.5
_LONGEST_DELAY = 30.0
_SECONDS = re.compile(r"\d{1,10}(\.\d{1,9})?", re.ASCII)
_DURATION = re.compile(r"(\d{1,10}(?:\.\d{1,9})?)s", re.ASCII)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What follows a failure: whether to send again, and how many seconds to wait before.

    `reason` says why not, where neither the failure nor the number of attempts does.
    """

    retry: bool
    delay: float = 0.0
    reason: str = ""


FINAL = Verdict(retry=False)
"""The end of a call, for a reason that the failure itself tells."""


class RetryBudget:
    """Bounds the retries of a scope that follow failures other than congestion.

    Every answer earns a tenth of a retry, beside ten to begin with, and no more are saved than can be of use
    at once. So what is broken for good gets at most a tenth more requests than calls, however many there are
    and however often each may be retried.

    >>> budget = RetryBudget()
    >>> [budget.spend() for _ in range(11)].count(True)
    10
    """

    __slots__ = ("_tenths",)

    def __init__(self) -> None:
        self._tenths = _FIRST_RETRIES * _ANSWERS_PER_RETRY

    def earn(self) -> None:
        """An answer has come."""
        if self._tenths < _MOST_RETRIES_SAVED * _ANSWERS_PER_RETRY:
            self._tenths += 1

    def spend(self) -> bool:
        """Take a retry; False if there is none."""
        if self._tenths < _ANSWERS_PER_RETRY:
            return False
        self._tenths -= _ANSWERS_PER_RETRY
        return True


def judge(
    error: LLMError,
    *,
    attempts: int,
    max_retries: int,
    random_source: random.Random,
    budget: RetryBudget,
    deadline: Deadline | None = None,
    shown: bool = False,
    elsewhere: bool = False,
) -> Verdict:
    """Decide on a failed attempt.

    Args:
        error: What the attempt ended with.
        attempts: Requests sent so far for this call, the failed one included.
        max_retries: Requests allowed after the first.
        random_source: Where the jitter comes from.
        budget: The scope's, which a retry is taken from unless the failure was congestion, for which the rate
            control slows everybody down, or the orderly end of a connection.
        deadline: The call's. A wait that goes past it is not begun.
        shown: Whether the user has seen some of a stream, which cannot be taken back and begun again.
        elsewhere: Whether the failure was of an API key, and another one may serve the call at once.

    A malformed answer is asked for once more only: it may have been billed. Waiting time is the
    provider's Retry-After, else full jitter: uniform from 0 to 0.5 s doubled per attempt, 30 s at most.

    >>> import random
    >>> circumstances = {"max_retries": 2, "random_source": random.Random(), "budget": RetryBudget()}
    >>> judge(RateLimitError("slow", retry_after=3.0), attempts=1, **circumstances)
    Verdict(retry=True, delay=3.0, reason='')
    >>> judge(RateLimitError("slow", retry_after=300.0), attempts=1, **circumstances).reason
    'asked to wait 300 s, which is too long to wait for'
    """
    allowed = min(max_retries, 1) if isinstance(error, APIResponseValidationError) else max_retries
    if attempts > allowed or shown:
        return FINAL
    if elsewhere:
        return Verdict(retry=True)
    if not error.retryable:
        return FINAL
    delay, why = error.retry_after, "not sent again"
    if delay is None:
        max_in_flight = min(_BASE_DELAY * 2.0 ** min(attempts - 1, 16), _LONGEST_DELAY)
        delay = random_source.uniform(0.0, max_in_flight)
    else:
        why = f"asked to wait {delay:.0f} s"
        if delay > LONGEST_RETRY_AFTER:
            return Verdict(retry=False, reason=f"{why}, which is too long to wait for")
    if deadline is not None and delay >= deadline.left:
        left = f"the deadline of {deadline.allowed:g} s is {max(deadline.left, 0):.1f} s away"
        return Verdict(retry=False, reason=f"{why}: {left}")
    if not is_congestion(error) and error.code != ORDERLY_END and not budget.spend():
        return Verdict(retry=False, reason=_BUDGET_SPENT)
    return Verdict(retry=True, delay=delay)


def is_congestion(error: LLMError) -> bool:
    """Whether a failure says that too much was sent just now, as against something having broken.

    A wait that is too long to wait for says nothing about a rate: whoever comes next shall be told the same
    at once, instead of being held back.
    """
    return (
        isinstance(error, (RateLimitError, OverloadedError))
        and (error.retry_after or 0.0) <= LONGEST_RETRY_AFTER
    )


def retry_after(headers: Mapping[str, str], *, now: datetime.datetime | None = None) -> float | None:
    """Seconds asked for by `retry-after-ms` or `retry-after` (seconds or an HTTP date; RFC 9110 §10.2.3).

    Strict: ASCII digits only, so that `nan`, `inf`, `1e400`, a sign or other scripts' digits, all of
    which `float` takes, count as absent. A date in the past is 0.

    >>> retry_after({"retry-after-ms": "1500", "retry-after": "9"})
    1.5
    >>> retry_after({"retry-after": "nan"}) is None
    True
    """
    milliseconds = headers.get("retry-after-ms", "").strip()
    if _SECONDS.fullmatch(milliseconds):
        return float(milliseconds) / 1000
    text = headers.get("retry-after", "").strip()
    if _SECONDS.fullmatch(text):
        return float(text)
    if not text or not text.isascii() or len(text) > 40:
        return None
    import datetime
    import email.utils

    try:
        moment = email.utils.parsedate_to_datetime(text)
        moment = moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)
        now = now or datetime.datetime.now(datetime.UTC)
        return max(0.0, (moment - now).total_seconds())
    except (ValueError, OverflowError, TypeError):
        return None


def retry_delay(text: object) -> float | None:
    """Seconds of a protobuf duration such as Gemini's `RetryInfo.retryDelay`, "27.39s".

    >>> retry_delay("27.39s")
    27.39
    """
    match = _DURATION.fullmatch(text) if isinstance(text, str) else None
    return float(match.group(1)) if match else None
