"""The judgement of refusals: random shares stay random, a limit shows, and states survive being stored."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llm_provider._limits.controller import AdaptiveController
from llm_provider._limits.random_refusals import RandomRefusals
from llm_provider._limits.rate_estimator import Ticket
from llm_provider._limits.state import InvalidStateError


def first_alarm(share: float, seed: int, *, clean: int = 0, requests: int = 600) -> int | None:
    """The number of the request whose refusal is said to follow the rate; None if there is none."""
    chance, refusals = random.Random(seed), RandomRefusals()
    for number in range(1, requests + 1):
        if number > clean and chance.random() < share and refusals.follow_rate(number):
            return number
    return None


@pytest.mark.parametrize(("share", "most"), [(0.01, 0), (0.05, 1), (0.1, 6), (0.2, 12), (0.3, 25)])
def test_a_share_at_random_is_seldom_taken_for_a_limit(share: float, most: int) -> None:
    assert sum(first_alarm(share, seed) is not None for seed in range(100)) <= most


@pytest.mark.parametrize(("share", "soon"), [(0.5, 40), (0.7, 15), (0.9, 10), (1.0, 6)])
def test_a_limit_shows_after_a_few_refusals(share: float, soon: int) -> None:
    for seed in range(20):
        alarm = first_alarm(share, seed, clean=200)
        assert alarm is not None
        assert alarm <= 200 + soon + 20


def test_refusals_in_another_order_prove_nothing() -> None:
    """256 requests are sent at once, and refusals of a tenth of them arrive in any order."""
    for seed in range(20):
        chance, refusals = random.Random(seed), RandomRefusals()
        numbers = [number for number in range(1, 257) if chance.random() < 0.1]
        chance.shuffle(numbers)
        assert not any(refusals.follow_rate(number) for number in numbers)
        assert 0.03 < refusals.share < 0.25


def test_beside_a_limit_the_random_share_hardly_rises() -> None:
    refusals = RandomRefusals()
    for number in range(20, 401, 20):
        assert not refusals.follow_rate(number)
    refusals.limited(100.0, 0.0)
    for number in range(405, 900, 5):
        refusals.follow_rate(number)
    refusals.skip(900)
    assert 0.04 < refusals.share <= 0.076


def test_refusals_soon_after_every_cut_are_random() -> None:
    refusals = RandomRefusals()
    assert refusals.come_soon(0.1, 10, 80.0) == 0
    assert refusals.come_soon(0.1, 10, 40.0) == 80.0
    assert refusals.share == pytest.approx(2 / 22)


def test_refusals_at_the_end_of_a_sweep_are_not() -> None:
    refusals = RandomRefusals()
    assert not any(refusals.come_soon(4.0, 10, 80.0) for _ in range(100))
    assert refusals.share == 0


NUMBERS = st.lists(st.tuples(st.integers(1, 500), st.booleans()), max_size=60)


@settings(max_examples=100, deadline=None)
@given(before=NUMBERS, after=NUMBERS)
def test_a_restored_record_judges_like_the_stored_one(
    before: list[tuple[int, bool]], after: list[tuple[int, bool]]
) -> None:
    record = RandomRefusals()
    for number, learning in before:
        record.follow_rate(number, learning=learning)
    restored = RandomRefusals.from_state(json.loads(json.dumps(record.to_state())))
    for number, learning in after:
        assert record.follow_rate(number, learning=learning) == restored.follow_rate(
            number, learning=learning
        )
        assert 0 <= record.share <= 1
    assert restored.to_state() == record.to_state()


@pytest.mark.parametrize("recent", [None, [-1], ["1"], list(range(100)), 3])
def test_a_damaged_record_is_refused(recent: object) -> None:
    with pytest.raises(InvalidStateError):
        RandomRefusals.from_state({**RandomRefusals().to_state(), "recent": recent})


def sent(controller: AdaptiveController, count: int, now: float) -> list[Ticket]:
    return [controller.sent(now, at_once=count) for _ in range(count)]


@pytest.mark.parametrize("how", ["refused", "overloaded"])
def test_only_the_call_that_is_refused_at_random_waits(how: str) -> None:
    controller, chance, now, alone = AdaptiveController(), random.Random(1), 0.0, []
    for _ in range(50):
        tickets = sent(controller, 20, now)
        for ticket in tickets:
            if chance.random() < 0.05:
                alone.append(getattr(controller, how)(now + 0.05, ticket, 1.0))
            else:
                controller.succeeded(now + 0.2, ticket)
        now += 1
    assert len(alone) > 30
    assert all(alone)
    assert controller.open
    assert controller.gate < now, "no Retry-After has closed it"


def test_a_call_fails_soon_where_every_request_is_refused() -> None:
    controller, now, alone = AdaptiveController(random_source=random.Random(0)), 0.0, False
    while not alone:
        now = max(now, controller.ready_at(now))
        alone = controller.refused(now + 0.05, controller.sent(now), None)
        assert now < 30
    assert now > 4, "a limit may end within seconds"
    gate = controller.gate
    assert controller.refused(now + 1, controller.sent(now + 1), 20.0)
    assert controller.gate == gate


def test_a_limit_near_the_rate_that_was_tried_again_disproves_the_share() -> None:
    refusals = RandomRefusals()
    refusals.come_soon(0.1, 10, 80.0)
    assert refusals.come_soon(0.1, 10, 40.0) == 80.0
    refusals.limited(90.0, 80.0)
    assert not refusals.known
    refusals.come_soon(0.1, 10, 80.0)
    assert refusals.come_soon(0.1, 10, 40.0) == 0, "it requires more proof now"
