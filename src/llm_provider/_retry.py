"""Which failures are sent again, and after how long. `_limits` only reacts to what is decided here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ._errors import BadResponse, LLMError, Overloaded, RateLimited

if TYPE_CHECKING:
    import datetime
    import random

DEFAULT_MAX_RETRIES = 6
"""Requests sent at most after the first. The SDKs' 2 is made for one interactive call; a batch that
finds its rate limit meets several rejections in a row, and full jitter keeps the extra ones cheap."""

LONGEST_RETRY_AFTER = 120.0
"""Seconds. A provider that asks for more than this is not waited for: the error is returned."""

_BASE_DELAY = 0.5
_LONGEST_DELAY = 30.0
_SECONDS = re.compile(r"\d{1,10}(\.\d{1,9})?", re.ASCII)
_DURATION = re.compile(r"(\d{1,10}(?:\.\d{1,9})?)s", re.ASCII)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What follows a failure: whether to send again, and how many seconds to wait before."""

    retry: bool
    delay: float = 0.0


def judge(error: LLMError, *, attempts: int, max_retries: int, random_source: random.Random) -> Verdict:
    """Decide on a failed attempt.

    Args:
        error: What the attempt ended with.
        attempts: Requests sent so far for this call, the failed one included.
        max_retries: Requests allowed after the first.
        random_source: Where the jitter comes from.

    A malformed answer is asked for once more only: it may have been billed. Waiting time is the
    provider's Retry-After, else full jitter: uniform from 0 to 0.5 s doubled per attempt, 30 s at most.

    >>> import random
    >>> judge(RateLimited("slow", retry_after=3.0), attempts=1, max_retries=2, random_source=random.Random())
    Verdict(retry=True, delay=3.0)
    """
    allowed = min(max_retries, 1) if isinstance(error, BadResponse) else max_retries
    if not error.retryable or attempts > allowed:
        return Verdict(retry=False)
    if error.retry_after is not None:
        if error.retry_after > LONGEST_RETRY_AFTER:
            return Verdict(retry=False)
        return Verdict(retry=True, delay=error.retry_after)
    ceiling = min(_BASE_DELAY * 2.0 ** min(attempts - 1, 16), _LONGEST_DELAY)
    return Verdict(retry=True, delay=random_source.uniform(0.0, ceiling))


def is_congestion(error: LLMError) -> bool:
    """Whether a failure says that too much was sent just now, as against something having broken.

    A wait that is too long to wait for says nothing about a rate: whoever comes next shall be told the same
    at once, instead of being held back.
    """
    return isinstance(error, (RateLimited, Overloaded)) and (error.retry_after or 0.0) <= LONGEST_RETRY_AFTER


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
