"""The rate estimator: what it learns from refusals, and what the limit is of."""

import pytest

from llm_provider._core.pace.limits import RateEstimator
from llm_provider._core.pace.state import Mark, Ticket


def ticket(number: int, at: float, *, rate: float = 10.0, phase: float = 1.0, tokens: float = 1.0) -> Ticket:
    return Ticket(number, at, 1, tokens, number * tokens, rate, phase)


def mark(number: int, at: float) -> Mark:
    return Mark(number, at, float(number))


def beside_others() -> RateEstimator:
    """An estimator after five refusals on time and an early one."""
    estimator = swept(10.0)
    on_time(estimator, 5)
    estimator.learn(ticket(516, 52.0, phase=0.1), mark(505, 50.0), 1.0)
    return estimator


def swept(estimate: float) -> RateEstimator:
    """An estimator that was limited at twice the estimate."""
    estimator = RateEstimator()
    estimator.close(2 * estimate, 0.0)
    assert estimator.estimate == estimate
    return estimator


def on_time(estimator: RateEstimator, count: int, *, seconds: float = 10.0, requests: int = 101) -> None:
    for number in range(count):
        before = mark(number * requests, number * seconds)
        estimator.learn(ticket((number + 1) * requests, (number + 1) * seconds), before, 1.0)


def test_three_refusals_in_a_row_that_were_due_end_the_following() -> None:
    estimator, widths = beside_others(), []
    for number in range(5):
        before = mark(516 + 101 * number, 52 + 10.0 * number)
        estimator.learn(ticket(617 + 101 * number, 62 + 10.0 * number), before, 1.0)
        widths.append(1 - estimator.rate / estimator.estimate)
    assert widths[:2] == pytest.approx([0.3, 0.3])
    assert widths[2] > widths[3] > widths[4]


@pytest.mark.parametrize(
    ("by_tokens", "refused", "then"),
    [
        (False, [3.0, 1.0, 4.0, 2.0, 0.5, 3.0], True),
        (False, [1.0, 0.2, 3.0, 0.1, 0.5, 1.2] * 9, False),
        (True, [0.1, 0.3, 0.2, 0.8, 0.1] * 4, False),
        (True, [1.0, 0.2, 3.0, 0.1, 0.5, 1.2] * 9, True),
    ],
    ids=["large ones: tokens", "any: still requests", "small ones: requests", "any: still tokens"],
)
def test_what_is_refused_tells_what_a_limit_is_of(by_tokens: bool, refused: list[float], then: bool) -> None:
    estimator = swept(10.0)
    estimator.by_tokens = by_tokens
    for number, tokens in enumerate(refused, 1):
        at, sent = number * 10.0, number * 101
        before = Mark(sent - 101, at - 10, sent - 101.0)
        estimator.learn(Ticket(sent, at, 1, tokens, sent + tokens - 1, 10.0, 1.0), before, 1.0)
    assert estimator.by_tokens == then
