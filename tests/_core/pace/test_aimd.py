"""The baseline's rule: one cut per episode of congestion, and growth where the window is used."""

import math

import pytest

from llm_provider._core.pace.aimd import AIMD
from llm_provider._core.pace.state import Ticket


def send(controller: AIMD, count: int, now: float) -> list[Ticket]:
    assert controller.ready_at(now, 1.0, 16, 0) == now
    return [controller.record_request(now, 1.0, 0) for _ in range(count)]


@pytest.mark.parametrize("refuse", ["record_refusal", "record_overload"])
def test_an_episode_of_refusals_halves_the_window_once(refuse: str) -> None:
    controller = AIMD()
    tickets = send(controller, 16, 0.0)
    assert controller.ready_at(0.0, 1.0, 16, 0) == math.inf
    for delay, gate in ((3.0, 4.0), (None, 4.0), (5.0, 6.0)):
        assert getattr(controller, refuse)(1.0, tickets.pop(), delay) is False
        assert (controller.window, controller.gate) == (8.0, gate)
    assert controller.refusals == 3
    for at, window in ((6.0, 4.0), (7.0, 2.0), (8.0, 1.0), (9.0, 1.0)):
        # Only a request of after the last cut begins another episode.
        getattr(controller, refuse)(at, Ticket(0, at - 0.5, 1, 1.0, 0.0, math.inf, 0.0), 0.0)
        assert controller.window == window


def test_a_used_window_grows_by_one_in_a_round_and_every_end_frees_a_place() -> None:
    controller = AIMD()
    tickets = send(controller, 16, 0.0)
    controller.record_refusal(1.0, tickets.pop(), 0.0)
    controller.record_failure(2.0, tickets.pop())
    controller.record_cancellation(tickets.pop())
    controller.record_withdrawal(tickets.pop())
    assert (controller.in_flight, controller.window) == (12, 8.0)
    for ticket in tickets:
        controller.record_success(3.0, ticket)
    # The last six were sent beside too few others to prove anything.
    assert 8.6 < controller.window < 8.8
    assert controller.in_flight == 0
    assert not controller.is_limited(3.0)
