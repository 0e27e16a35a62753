"""The requests of a call: their sums, those of their parts, and the error of a deadline that passes."""

from __future__ import annotations

from decimal import Decimal

import pytest

from llm_provider import FailedAttempt, LLMError, Usage
from llm_provider._calls.sent_requests import Charge, SentRequests
from llm_provider._limits.timeouts import Deadline

DEADLINE = Deadline(5.0, 0.0)
REFUSED = FailedAttempt(error="RateLimitError")
LATE = FailedAttempt(error="APITimeoutError", maybe_billed=True)


def sent(*ends: FailedAttempt | Charge | None, under_way: int = 0) -> SentRequests:
    """Requests that have ended, each with its failure or its charge, and others under way."""
    requests = SentRequests()
    for end in ends:
        requests.begin()
        requests.end(end if isinstance(end, FailedAttempt) else None)
        if isinstance(end, Charge):
            requests.charges += (end,)
    for _ in range(under_way):
        requests.begin()
    return requests


def charge(usd: str | None, tokens: int | None = 1, source: str = "prices") -> Charge:
    usage = None if tokens is None else Usage(input_tokens=tokens)
    return Charge(None if usd is None else Decimal(usd), usage, source)  # type: ignore[arg-type]  # one of three


def written(requests: SentRequests) -> LLMError:
    error = LLMError("failed")
    requests.write_to(error)
    return error


def test_the_sums_are_exact_and_those_of_every_part() -> None:
    whole = sent(charge("0.1"), REFUSED)
    whole.parts += (sent(charge("0.2", 5, "reply")), sent(REFUSED))
    whole.parts[0].parts += (sent(charge("0.3", None)),)
    error = written(whole)
    assert (error.attempts, error.failures, error.maybe_billed) == (5, (REFUSED, REFUSED), True)
    assert (error.cost, error.usage) == (0.6, Usage(input_tokens=6))
    assert whole.whole().cost_source == "prices"


@pytest.mark.parametrize(
    ("requests", "cost", "maybe_billed"),
    [
        (sent(), 0.0, False),
        (sent(REFUSED, REFUSED), 0.0, False),
        (sent(LATE, charge(None, None)), None, True),
        (sent(charge("0.5"), charge(None)), None, True),
        (sent(charge("0.5"), under_way=1), None, True),
        (sent(charge("0.5"), REFUSED), 0.5, True),
    ],
)
def test_a_cost_is_known_if_that_of_each_request_is(
    requests: SentRequests, cost: float | None, maybe_billed: bool
) -> None:
    error = written(requests)
    assert (error.cost, error.maybe_billed) == (cost, maybe_billed)
    assert (requests.whole().cost_source is None) == (cost is None or not requests.charges)


def test_a_request_that_was_not_sent_after_all_does_not_count() -> None:
    requests = sent(under_way=1)
    requests.withdraw()
    assert (requests.attempts, requests.under_way) == (0, 0)


@pytest.mark.parametrize(
    ("requests", "message"),
    [
        (sent(), "nothing was sent"),
        (sent(REFUSED, LATE), "after RateLimitError, APITimeoutError"),
        (sent(REFUSED, under_way=1), "a request was under way, after RateLimitError"),
        (sent(charge("0.1")), "1 request was answered"),
        (sent(charge("0.1"), charge("0.1"), LATE), "2 requests were answered, after APITimeoutError"),
    ],
)
def test_a_missed_deadline_says_what_was_sent(requests: SentRequests, message: str) -> None:
    error = requests.deadline_error(DEADLINE)
    assert str(error).startswith(f"not answered by the deadline of 5 s: {message}")
    assert (error.phase, error.limit) == ("deadline", 5.0)
    assert (error.attempts, error.failures) == (requests.attempts, requests.failures)
