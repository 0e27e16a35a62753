"""The window alone: slow start, cap and brake, each by the outcomes that lead to it."""

from __future__ import annotations

import math

import pytest

from llm_provider._limits.rate_estimator import Ticket
from llm_provider._limits.window import COHORT, FIRST_WINDOW, ConcurrencyWindow


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


def test_it_starts_open(window: ConcurrencyWindow) -> None:
    assert (window.size, window.slow_start, window.cap) == (FIRST_WINDOW, True, math.inf)
    window.end_slow_start()
    assert (window.size, window.slow_start) == (math.inf, False)


def test_three_refusals_at_one_concurrency_prove_a_cap() -> None:
    assert capped(21).cap == capped(21).size == 20


def test_the_first_refusal_guesses_a_cap_until_one_more_is_served(window: ConcurrencyWindow) -> None:
    window.suspects(1.0, ticket(21, 21), 25)
    assert window.guessed
    assert window.unpaced == 20
    window.record_success(2.0, ticket(26, 21))
    assert window.unpaced == math.inf
    window.end_slow_start()
    assert window.unpaced == 0


@pytest.mark.parametrize(("cap", "spacing"), [(20, 0.0), (99, 1.1 * 0.5 / 99)])
def test_requests_below_a_high_guessed_cap_are_not_sent_at_once(
    window: ConcurrencyWindow, cap: int, spacing: float
) -> None:
    cohort(window, 1, 10, 0.5)
    window.suspects(1.0, ticket(200, cap + 1), 210)
    assert window.spacing == pytest.approx(spacing)


def test_a_request_whose_refusal_is_on_its_way_is_not_in_flight(window: ConcurrencyWindow) -> None:
    window.suspects(1.0, ticket(21, 21), 25)
    window.record_refusal(ticket(30, 21), 35)
    window.record_success(2.0, ticket(32, 21))
    assert window.guessed, "only 20 were with the server"
    window.record_success(2.0, ticket(36, 21))
    assert not window.guessed


def test_successes_at_the_suspected_cap_speak_against_it(window: ConcurrencyWindow) -> None:
    window.end_slow_start()
    cohort(window, 1, 10, 0.5)
    assert not window.suspects(10.0, ticket(100, 21), 100)
    for number in range(101, 110):
        window.record_success(11.0, ticket(number, 21))
    assert not window.suspects(12.0, ticket(111, 21), 111)
    assert not window.suspects(13.0, ticket(112, 21), 112)
    assert window.cap == math.inf


def test_a_single_request_proves_no_cap(window: ConcurrencyWindow) -> None:
    assert not any(window.suspects(float(number), ticket(number, 1), number) for number in range(1, 20))


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


def test_answers_twice_as_slow_brake_and_fast_ones_release(window: ConcurrencyWindow) -> None:
    number = cohort(window, 1, 100, 1.0)
    number = cohort(window, number, 400, 4.0)
    assert window.size == 150, "half more than Little's law asks for"
    number = cohort(window, number, 150, 1.2)
    assert window.size == pytest.approx(165)
    cohort(window, number, 20, 1.0)
    assert window.size == pytest.approx(165), "an unused window proves nothing"


def test_an_overload_shrinks_what_was_in_flight(window: ConcurrencyWindow) -> None:
    window.record_overload(100)
    assert window.size == 70
    for _ in range(50):
        window.record_overload(1)
    assert window.size == 1
