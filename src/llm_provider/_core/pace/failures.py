"""Decides what failures lead to: the retry of a call, or the outage of a scope. It has no clock.

| state | entered by | requests that may be sent |
|---|---|---|
| up | the start, or enough answers while ramping | as many as the controller allows |
| suspected | a failure of the provider or of the way to it | the same |
| down | nearly every request fails, for long enough | one probe, at intervals from 0.5 s to 30 s |
| ramping | the probe shows that the provider works | 8 at once, and one more for each answer |

A failure of the way to the provider is a refused connection, a name that is not resolved, or a timeout. A
failure of the provider is an answer with a status of 500 or above. Any other answer shows that the provider
works, also a refusal because of a rate limit. Times are seconds of one monotonic clock, given by the caller.

A server that fails the requests of one model, and answers others, is not down: what it is asked for is the
reason, such as images that it cannot read. So a scope that is down is doubted. If its server answers
something else, the scope is up again, and its failures count as answers for `EVIDENCE` seconds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .. import errors
from .call_limits import DEFAULT_PATIENCE, Deadline, Patience
from .failure_table import consequence_of
from .state import Ticket

if TYPE_CHECKING:
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
"""Retries that time allows without answers, as in Finagle's retry budget: a spent budget delays retries."""

_MOST_RETRIES_SAVED = 1000
"""Most retries that can be saved. If all requests in flight fail at once, for example because a server
restarts, each of them can be retried."""

_BASE_DELAY = 0.5
_LONGEST_DELAY = 30.0

LEAST_FAILURES, _LEAST_SECONDS = 5, 1.0
"""A scope is down after so many failures in a row over so many seconds. Two seconds of single calls with
back-off are enough. Without the seconds, five requests that broke with one connection would count as an
outage."""
EVIDENCE = 30.0
"""Seconds for which an answer to another request shows that a server works. A model that has answered before
may recover by itself, so its outage is not doubted for as long."""
_ENOUGH_FAILURES = 12
"""A scope is down after so many failures in a row, however short the time. If three requests of ten fail at
random, so many fail in a row once in two million requests. A mistake costs one interval."""
_SHARE = 0.8
"""Share of the requests that have failed, among those sent between the first and the last failed one. The
others have no outcome yet. A provider that answers slowly and fails fast has a lower share."""
_FIRST_INTERVAL, _LONGEST_INTERVAL = 0.5, 30.0
"""Seconds between two probes."""
_GROWTH = 1.5
"""Factor on the interval after each probe that fails. Work resumes after at most 1.5 times the length of an
outage, and ten minutes take 28 probes."""
_RAMP = 8
"""Requests at once when work resumes. Each answer allows one more in flight."""


NOT_STARTED = 3.0
"""Seconds that a call waits, if its user has not said how long, for a server of this machine that refuses
connections and has not answered before. It is rather not started than down."""

SHORTAGES = ("EMFILE", "ENFILE")
"""The codes of a failure to connect because this process, or the machine, may open no more files."""


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
        self.answers = 0
        """Answers since the last retry."""
        self._tenths: float = _FIRST_RETRIES * _ANSWERS_PER_RETRY
        """Tenths of retries; below 0 while earlier retries wait for theirs."""
        self._at = math.inf

    def spend(self, now: float) -> float:
        """Take one retry at `now`, seconds of a monotonic clock. Returns the seconds that it must wait."""
        per_second = _RETRIES_PER_SECOND * _ANSWERS_PER_RETRY
        most = _FIRST_RETRIES * _ANSWERS_PER_RETRY
        self._tenths = min(self._tenths + self.answers, _MOST_RETRIES_SAVED * _ANSWERS_PER_RETRY)
        self.answers = 0
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


def is_outage(error: errors.LLMError) -> bool:
    """Whether a failure may be part of an outage. That this process has no file left is not."""
    if error.code in SHORTAGES:
        return False
    return consequence_of(error).outage and (error.retryable or "_ended" in vars(error))


def is_answer(error: errors.LLMError) -> bool:
    """Whether a failure is an answer that shows that the provider works: HTTP 400 or 429, for example."""
    no_answers = (errors.APIConnectionError, errors.APIResponseValidationError, errors.APITimeoutError)
    return error.status is not None and not is_outage(error) and not isinstance(error, no_answers)


def is_unbilled(error: errors.LLMError) -> bool:
    """Whether no provider bills a failed request of an outage: its status of 500 or above is no answer.

    `maybe_billed` is more careful: a gateway may give up what the provider goes on with.
    """
    return not error.maybe_billed or (error.status is not None and error.status >= 500)


def may_be_of_requests(error: errors.LLMError | None) -> bool:
    """Whether the requests may be the reason for a failure. A 503 or 529 asks to come back later."""
    return isinstance(error, errors.InternalServerError) and (error.status or 0) >= 500


def still_waits(error: errors.LLMError, patience: Patience, now: float) -> bool:
    """Whether a call would wait longer for the provider that an error says is down: one of `note_outage`."""
    down_since, most = vars(error).get("_outage", (-math.inf, 0.0))
    if patience.is_default and vars(error).get("_refused_here"):
        most = min(most, NOT_STARTED)
    return bool(now < max(down_since, patience.since) + min(patience.seconds, most))


def note_outage(error: errors.LLMError, down_since: float, most: float) -> None:
    """Note in an error of a call that its provider is down, and the most seconds that calls wait for that."""
    vars(error)["_outage"] = down_since, most


class Outage:
    """Whether one scope is down."""

    def __init__(self) -> None:
        self.watches: bool = False
        """Whether the state is another one than up. Otherwise the other methods need not be called."""
        self.down_since: float | None = None
        """When the first failed request of the outage was sent; None unless the scope is down."""
        self.longest_interval = _LONGEST_INTERVAL
        """Seconds between two probes, at most."""
        self.ramp: float = _RAMP
        """Requests at once when work resumes."""
        self.answered_at = -math.inf
        """When the scope answered last."""
        self.excused_until = -math.inf
        """Until then, failures that may be of requests are none of an outage."""
        self._doubted_at = -math.inf
        self._reset()

    def _reset(self) -> None:
        self.cause: errors.LLMError | None = None
        """The last failure. Its traceback keeps the whole call in memory, so an answer ends it."""
        self._failed = 0
        self._first: Ticket | None = None
        self._last: Ticket | None = None
        self._callers: set[object] = set()
        self._not_about_callers = False
        self._credit, self._goal = math.inf, 0
        self._probe: Ticket | None = None
        self._interval, self.next_try = _FIRST_INTERVAL, math.inf
        """Seconds until the next probe, and when it may be sent, while the scope is down."""

    @property
    def one_caller(self) -> bool:
        """Whether only one call has met all failures, and may be their reason: a connection was opened."""
        return len(self._callers) == 1 and not self._not_about_callers

    def is_not_started(self, patience: Patience | None, waited: float = math.inf) -> bool:
        """Whether a call with this patience waits for `NOT_STARTED` seconds only, and has waited so long."""
        if patience is None or self.cause is None or not patience.is_default or waited <= NOT_STARTED:
            return False
        return "_refused_here" in vars(self.cause) and self.answered_at == -math.inf

    def seconds_of(self, patience: Patience) -> float:
        """How long a call with this patience waits for the scope, which is down."""
        # The only call that fails is perhaps itself the reason, and the calls behind it wait for it.
        most = DEFAULT_PATIENCE if self.one_caller else math.inf
        return min(patience.seconds, NOT_STARTED if self.is_not_started(patience) else most)

    def ready_at(self, now: float) -> float:
        """The time at which a request may be sent: `now`, later, or infinity if an answer must come first."""
        if self.down_since is not None:
            return max(now, self.next_try)
        return now if self._credit >= 1 else math.inf

    def record_request(self, now: float, ticket: Ticket) -> None:
        """Record that a request is sent. While the scope is down, it is a probe."""
        if self.down_since is None:
            self._credit -= 1
        else:
            self._probe = ticket
            # The answer to a probe that hangs is not awaited for longer than this.
            self.next_try = now + _LONGEST_INTERVAL

    def record_failure(self, now: float, ticket: Ticket, error: errors.LLMError, caller: object) -> None:
        """Record a failure that may be part of an outage; see `is_outage`. `caller` identifies the call."""
        self.watches = True
        self.cause = error
        self._credit += 1
        if self.down_since is not None:
            if ticket is self._probe:
                self._probe = None
                self._interval = min(_GROWTH * self._interval, self.longest_interval)
                self._wait(now, error)
            self._note(error, caller)
            return
        if self._first is None or self._last is None:
            self._first = self._last = ticket
        elif ticket.order < self._first.order:
            self._first = ticket
        elif ticket.order > self._last.order:
            self._last = ticket
        self._failed += 1
        self._note(error, caller)
        if self._failed < LEAST_FAILURES or self._failed < _SHARE * (
            self._last.order - self._first.order + 1
        ):
            return
        if self._failed >= _ENOUGH_FAILURES or now - self._first.at >= _LEAST_SECONDS:
            self.down_since = self._first.at
            self._goal = max(self._first.in_flight, self._last.in_flight)
            self._wait(now, error)

    def _note(self, error: errors.LLMError, caller: object) -> None:
        if len(self._callers) < LEAST_FAILURES:
            self._callers.add(caller)
        if is_free(error):
            self._not_about_callers = True

    def must_doubt(self, now: float) -> bool:
        """Whether to find out now if the server answers other requests. It is asked again after some time."""
        if (
            self.down_since is None
            or len(self._callers) < LEAST_FAILURES
            or not may_be_of_requests(self.cause)
            or now - self._doubted_at < EVIDENCE
            or (self.answered_at > -math.inf and now - self.down_since < EVIDENCE)
        ):
            return False
        self._doubted_at = now
        return True

    def excuse(self, until: float) -> None:
        """Note that the server answers other requests: the scope is up, and its requests are the reason."""
        self._reset()
        self.down_since, self.excused_until = None, until

    def _wait(self, now: float, error: errors.LLMError) -> None:
        retry_after = min(error.retry_after or 0.0, _LONGEST_INTERVAL)
        self.next_try = now + max(self._interval, retry_after)

    def works(self, ticket: Ticket) -> None:
        """Record an answer, which shows nothing if its request is older than the first failure."""
        if self.down_since is not None:
            if ticket is self._probe or (self._last is not None and ticket.order > self._last.order):
                goal = self._goal
                self._reset()
                self.down_since = None
                self._credit, self._goal = self.ramp, goal
            return
        if self._first is not None and ticket.order > self._first.order:
            credit, goal = self._credit, self._goal
            self._reset()
            self._credit, self._goal = credit, goal
        self._credit += 2
        if self._credit > self._goal:
            self._credit = math.inf
        self.watches = self._first is not None or self._credit < math.inf

    def record_end(self, now: float, ticket: Ticket) -> None:
        """Record a request without an outcome: it was cancelled, or not sent."""
        self._credit += 1
        if ticket is self._probe:
            self._probe, self.next_try = None, now
