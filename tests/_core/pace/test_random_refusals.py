"""The judgement of refusals: random shares stay random, and a limit shows."""

import random

import pytest

from llm_provider._core.pace.controller import AdaptiveController
from llm_provider._core.pace.headers import Allowance, Headroom
from llm_provider._core.pace.random_refusals import RandomRefusals
from llm_provider._core.pace.state import Ticket
from rate_limit_world import MANY, bucket, run


def first_alarm(share: float, seed: int, *, clean: int = 0, requests: int = 600) -> int | None:
    """The number of the request whose refusal is said to follow the rate; None if there is none."""
    chance, refusals = random.Random(seed), RandomRefusals()
    for number in range(1, requests + 1):
        if number > clean and chance.random() < share and refusals.follow_rate(number):
            return number
    return None


@pytest.mark.parametrize(("share", "most"), [(0.01, 0), (0.05, 1), (0.1, 6), (0.2, 12), (0.3, 25)])
@pytest.mark.sampled(4)
def test_a_share_at_random_is_seldom_taken_for_a_limit(share: float, most: int) -> None:
    assert sum(first_alarm(share, seed) is not None for seed in range(100)) <= most


@pytest.mark.parametrize(("share", "soon"), [(0.5, 40), (0.7, 15), (0.9, 10), (1.0, 6)])
def test_a_limit_shows_after_a_few_refusals(share: float, soon: int) -> None:
    for seed in range(20):
        alarm = first_alarm(share, seed, clean=200)
        assert alarm is not None
        assert alarm <= 200 + soon + 20


def trial(refused: int, refusals: RandomRefusals, *, due: bool = False) -> bool | None:
    """The verdict after a trial with so many refusals, and a later refusal of another request."""
    refusals.begin_trial(100, 1.0)
    for number in range(101, 101 + refused):
        if (verdict := refusals.judge(0.5, number, due=due)) is not None:
            return verdict
    return refusals.judge(2.0, 150, due=due)


def test_the_rate_grows_after_three_trials_without_a_limit() -> None:
    refusals = RandomRefusals()
    grows = []
    for _ in range(3):
        trial(1, refusals)
        grows.append(refusals.grow)
    assert grows == [False, False, True]


def send(controller: AdaptiveController, count: int, now: float) -> list[Ticket]:
    return [controller.record_request(now, 1.0, count) for _ in range(count)]


@pytest.mark.parametrize("how", ["record_refusal", "record_overload"])
def test_only_the_call_that_is_refused_at_random_waits(how: str) -> None:
    controller, chance, now, alone = AdaptiveController(), random.Random(1), 0.0, []
    for _ in range(50):
        for ticket in send(controller, 20, now):
            if chance.random() < 0.05:
                alone.append(getattr(controller, how)(now + 0.05, ticket, 1.0))
            else:
                controller.record_success(now + 0.2, ticket)
        now += 1
    assert len(alone) > 30
    assert all(alone)
    assert controller.open
    assert controller.gate < now, "no Retry-After has closed it"


def test_a_call_fails_soon_where_every_request_is_refused() -> None:
    controller, now, alone = AdaptiveController(random_source=random.Random(0)), 0.0, False
    while not alone:
        now = max(now, controller.ready_at(now, 1.0, MANY, 0))
        alone = controller.record_refusal(now + 0.05, controller.record_request(now, 1.0, 0), None)
        assert now < 30
    assert now > 4, "a limit may end within seconds"
    gate = controller.gate
    assert controller.record_refusal(now + 1, controller.record_request(now + 1, 1.0, 0), 20.0)
    assert controller.gate == gate


def controller_at(rate: float) -> AdaptiveController:
    """A controller that has seen requests refused at four times a rate."""
    controller = AdaptiveController(random_source=random.Random(0))
    controller._estimator.close(4 * rate, 0.0)
    controller._window.end_slow_start()
    return controller


@pytest.mark.parametrize(("tokens", "begins"), [(1.0, True), (4.0, False)])
def test_the_refusal_of_a_large_request_begins_no_trial(tokens: float, begins: bool) -> None:
    controller, now, alone = controller_at(100.0), 0.0, False
    for _ in range(20):
        for _ in range(4):
            now = max(now, controller.ready_at(now, 1.0, MANY, 0))
            controller.record_success(now, controller.record_request(now, 1.0, 0))
        now = max(now, controller.ready_at(now, tokens, MANY, 0))
        alone = alone or controller.record_refusal(now, controller.record_request(now, tokens, 0))
    assert alone is begins


@pytest.mark.parametrize(("rate", "capacity", "share"), [(10.0, 10.0, 0.05), (100.0, 100.0, 0.1)])
def test_a_limit_is_used_beside_random_refusals(rate: float, capacity: float, share: float) -> None:
    """The limit is nearly known, and the calls that were refused come back at once."""
    chance, limit = random.Random(0), bucket(rate, capacity)

    def admit(now: float, serving: int) -> float:
        return 1e-9 if chance.random() < share else limit(now, serving)

    _, (served,), _ = run(admit, 200, retry_after=False, make=lambda _: controller_at(rate))
    assert served > 0.75 * 200 * rate


ROOM = Headroom(Allowance(rate=10_000 / 60, remaining=9_000))


def send_rounds(
    controller: AdaptiveController, rounds: int, share: float, retry_after: float | None
) -> tuple[list[bool], float]:
    """Whether each random refusal held its own call alone, and the time after so many rounds of twenty."""
    chance, now, alone = random.Random(3), 0.0, []
    for _ in range(rounds):
        for ticket in send(controller, 20, now):
            if chance.random() < share:
                alone.append(controller.record_refusal(now + 0.05, ticket, retry_after, ROOM))
            else:
                controller.record_success(now + 0.5, ticket, ROOM)
        now += 1
    return alone, now


@pytest.mark.parametrize("share", [0.01, 0.05, 0.2])
@pytest.mark.parametrize("retry_after", [None, 0.1, 1.0, 20.0, 90.0])
def test_headers_that_show_room_make_no_limit_of_random_refusals(
    share: float, retry_after: float | None
) -> None:
    controller = AdaptiveController()
    alone, now = send_rounds(controller, 200, share, retry_after)
    assert len(alone) > 20
    assert all(alone)
    assert controller.open, "no limit was invented"
    assert controller.ready_at(now, 1.0, MANY, 0) == now, "nothing holds the other calls back"


@pytest.mark.parametrize("headroom", [None, ROOM])
@pytest.mark.parametrize("retry_after", [1.0, 20.0, 90.0])
@pytest.mark.parametrize("share", [0.0, 0.02])
def test_a_limit_that_asks_for_a_long_wait_closes_the_gate(
    headroom: Headroom | None, retry_after: float, share: float
) -> None:
    """Everything is refused suddenly. Headers that show room do not hide that for long."""
    controller = AdaptiveController(random_source=random.Random(0))
    _, now = send_rounds(controller, 50, share, retry_after)
    refused = 0
    while controller.gate < now + 0.9 * retry_after:
        now = max(now, controller.ready_at(now, 1.0, MANY, 0))
        controller.record_refusal(now + 0.05, controller.record_request(now, 1.0, 0), retry_after, headroom)
        refused, now = refused + 1, now + 0.05
        assert refused < 20
    assert controller.ready_at(now, 1.0, MANY, 0) > now + 0.8 * retry_after


def test_what_false_headers_held_back_is_not_sent_at_once() -> None:
    """Headers hold back requests, and many are refused: their end is no burst and no invented rate."""
    controller, now = AdaptiveController(), 0.0
    told = Headroom(Allowance(rate=20.0, remaining=20.0))
    controller.record_success(now, controller.record_request(now, 1.0, 0), told)
    while controller._heeds_headers:
        now += 1.0
        tickets = []
        while controller.ready_at(now, 1.0, MANY, 8) <= now:
            tickets.append(controller.record_request(now, 1.0, 8))
        assert len(tickets) <= 21, "as many as the headers allow"
        for ticket in tickets:
            if now > 20 and ticket.number % 5 == 0:
                controller.record_refusal(now + 0.05, ticket, 0.1, told)
            else:
                controller.record_success(now + 0.5, ticket, told)
        assert now < 200
    assert controller.open
    now = max(now + 1.0, controller.gate)
    sent = 0
    while controller.ready_at(now, 1.0, MANY, 8) <= now:
        controller.record_request(now, 1.0, 8)
        sent += 1
    assert 0 < sent <= 3 * 21
