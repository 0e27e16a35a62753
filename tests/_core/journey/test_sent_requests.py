"""The requests of a call: their sums, those of their parts, and the error of a deadline that passes."""

from decimal import Decimal

import pytest

from llm_provider import FailedAttempt
from llm_provider._core.journey.sent_requests import Charge, SentRequests
from llm_provider._core.pace.call_limits import Deadline

DEADLINE = Deadline(5.0, 0.0)
REFUSED = FailedAttempt(error="RateLimitError")
LATE = FailedAttempt(error="APITimeoutError", maybe_billed=True)


def sent(*ends: FailedAttempt | Charge, under_way: int = 0) -> SentRequests:
    """Requests that have ended, each with its failure or its charge, and others under way."""
    requests = SentRequests()
    for end in ends:
        requests.start()
        requests.leave()
        requests.end(end if isinstance(end, FailedAttempt) else None)
        if isinstance(end, Charge):
            requests.charges += (end,)
    for _ in range(under_way):
        requests.start()
        requests.leave()
    return requests


CHARGE = Charge(Decimal("0.1"), None, "prices")


def test_a_request_counts_while_it_is_not_held() -> None:
    requests = sent(under_way=1)
    requests.hold()
    assert (requests.attempts, requests.under_way) == (0, 0)
    requests.leave()
    requests.leave()
    assert (requests.attempts, requests.under_way) == (1, 1)
    requests.tell()
    requests.hold()
    requests.leave()
    assert (requests.attempts, requests.under_way) == (0, 0)


@pytest.mark.parametrize(
    ("requests", "message"),
    [
        (sent(), "nothing was sent"),
        (sent(REFUSED, LATE), "after RateLimitError, APITimeoutError"),
        (sent(REFUSED, under_way=1), "a request was under way, after RateLimitError"),
        (sent(CHARGE), "1 request was answered"),
        (sent(CHARGE, CHARGE, LATE), "2 requests were answered, after APITimeoutError"),
    ],
)
def test_a_missed_deadline_says_what_was_sent(requests: SentRequests, message: str) -> None:
    error = requests.deadline_error(DEADLINE)
    assert str(error).startswith(f"not answered by the deadline of 5 s: {message}")
    requests.problem = "Why."
    assert requests.deadline_error(DEADLINE).message.endswith(f"{message}: Why.")
    assert (error.phase, error.limit) == ("deadline", 5.0)
    assert (error.attempts, error.failures) == (requests.attempts, requests.failures)
