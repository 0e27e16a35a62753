"""The window alone: the cap after it was proved. The small worlds of the controller have the rest."""

import math

import pytest

from llm_provider._limits.rate_estimator import Ticket
from llm_provider._limits.window import COHORT, ConcurrencyWindow


def ticket(number: int, in_flight: int, at: float = 0.0) -> Ticket:
    return Ticket(number, at, in_flight, 1.0, float(number), 10.0, 1.0)


def cohort(window: ConcurrencyWindow, first: int, in_flight: int, latency: float) -> int:
    """A whole cohort of requests with this latency; the number of the next request."""
    window.measure_after(first - 1)
    window.most = in_flight
    for number in range(first, first + COHORT):
        window.record_end(ticket(number, in_flight), first + COHORT - 1, latency)
    return first + COHORT


def capped(at: int = 21) -> ConcurrencyWindow:
    """A window whose cap three refusals have proved."""
    window = ConcurrencyWindow()
    window.end_slow_start()
    cohort(window, 1, 10, 0.5)
    proved = [window.suspects(10.0 + number, ticket(100 + number, at), 100 + number) for number in range(3)]
    assert proved == [False, False, True]
    return window


@pytest.fixture
def window() -> ConcurrencyWindow:
    return ConcurrencyWindow()


def test_a_refusal_at_the_cap_lowers_it_and_three_below_disprove_it() -> None:
    window = capped(21)
    assert window.explains(20.0, ticket(200, 21), 200)
    assert window.cap == 20
    assert window.explains(21.0, ticket(201, 20), 201)
    assert window.cap == 19
    assert not window.explains(22.0, ticket(202, 5), 202)
    assert window.explains(23.0, ticket(203, 19), 203)
    assert window.explains(24.0, ticket(204, 18), 204)
    assert window.cap == math.inf


def test_a_cap_is_probed_from_time_to_time_and_raised_by_a_success() -> None:
    window = capped(21)
    now = window.ready_at(15.0, 20)
    assert 15.0 < now < math.inf
    window.record_request(now)
    assert window.ready_at(now, 20) > now
    assert window.ready_at(now, 25) == math.inf
    window.record_success(now + 1, ticket(200, 21))
    assert window.cap == window.size == 21
    assert window.ready_at(now + 1, 21) == now + 1, "the next attempt is made at once"
