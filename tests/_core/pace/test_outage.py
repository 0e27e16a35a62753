"""When a scope counts as down, when its probes go out, and how work resumes.

Golden pairs have what counts as a failure and what as an answer.
"""

import itertools
import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llm_provider._core.errors import APIConnectionError, InternalServerError, LLMError, OverloadedError
from llm_provider._core.pace.outage import Outage
from llm_provider._core.pace.rate_estimator import Ticket

BROKEN = InternalServerError("HTTP 500", status=500)
REFUSED = APIConnectionError("connection refused")


def ticket(number: int, at: float = 0.0, in_flight: int = 1) -> Ticket:
    made = Ticket(0, at, in_flight, 1.0, 1.0, math.inf, 0.0)
    made.order = number
    return made


def fail(
    outage: Outage, numbers: range, error: LLMError = BROKEN, *, at: float = 0.0, now: float = 0.1
) -> None:
    for number in numbers:
        outage.record_failure(now, ticket(number, at, 100), error, number)


def down(error: LLMError = BROKEN) -> Outage:
    outage = Outage()
    fail(outage, range(1, 13), error)
    assert outage.down_since == 0.0
    return outage


def probe(outage: Outage, number: int) -> tuple[float, Ticket]:
    """Sends a probe as soon as it may be sent."""
    now = outage.ready_at(0.0)
    sent = ticket(number, now)
    outage.record_request(now, sent)
    return now, sent


@pytest.fixture
def outage() -> Outage:
    return Outage()


class TestDown:
    def test_five_failures_over_a_second(self, outage: Outage) -> None:
        for number in range(1, 6):
            assert outage.down_since is None
            outage.record_failure(number * 0.3, ticket(number, number * 0.25), BROKEN, number)
        assert outage.down_since == 0.25

    def test_a_connection_that_broke_with_its_five_requests_is_none(self, outage: Outage) -> None:
        fail(outage, range(1, 6), APIConnectionError("broke", maybe_billed=True))
        assert outage.down_since is None

    def test_an_answer_to_a_later_request_ends_the_run(self, outage: Outage) -> None:
        fail(outage, range(1, 12))
        outage.works(ticket(10))
        assert not outage.watches
        fail(outage, range(30, 41))
        assert outage.down_since is None

    @settings(max_examples=20)
    @given(st.integers(0, 2**32), st.sampled_from([0.01, 0.1, 0.3]))
    def test_random_failures_are_none(self, seed: int, share: float) -> None:
        chance, outage = random.Random(seed), Outage()
        for number in range(1, 2000):
            now = number * 0.02
            if chance.random() < share:
                outage.record_failure(now, ticket(number, now - 0.2), BROKEN, number)
            else:
                outage.works(ticket(number, now - 0.2))
            assert outage.down_since is None

    @pytest.mark.parametrize("error", [BROKEN, REFUSED])
    def test_failures_of_a_call_are_its_own_if_connections_open(
        self, outage: Outage, error: LLMError
    ) -> None:
        for number in range(1, 8):
            outage.record_failure(float(number), ticket(number, number - 0.5), error, "the call")
        assert outage.down_since == 0.5
        assert outage.one_caller is (error is BROKEN)
        outage.record_failure(9.0, ticket(8, 8.5), BROKEN, "another call")
        assert not outage.one_caller


class TestProbes:
    def test_their_intervals_grow_to_half_a_minute(self) -> None:
        outage, times = down(), []
        for number in range(21, 60):
            now, sent = probe(outage, number)
            times.append(now)
            outage.record_failure(now, sent, BROKEN, number)
        intervals = [later - earlier for earlier, later in itertools.pairwise(times)]
        assert all(0.6 < interval < 33.1 for interval in intervals)
        assert all(interval > 26.9 for interval in intervals[-10:])
        assert len([time for time in times if time < 600]) <= 30

    def test_a_cancelled_probe_makes_room_for_the_next(self) -> None:
        outage = down()
        now, sent = probe(outage, 21)
        outage.record_end(now + 1, sent)
        assert outage.ready_at(now + 1) == now + 1

    def test_retry_after_delays_the_probe(self) -> None:
        assert down(OverloadedError("HTTP 503", status=503, retry_after=20.0)).ready_at(0.1) == 20.1

    def test_answers_to_requests_from_before_do_not_end_the_outage(self) -> None:
        outage = down()
        now, sent = probe(outage, 30)
        outage.works(ticket(5))
        assert outage.down_since is not None
        outage.works(sent)
        assert outage.down_since is None
        assert outage.ready_at(now) == now


class TestRamp:
    def test_work_resumes_with_a_few_and_grows_with_answers(self) -> None:
        outage = down()
        outage.works(probe(outage, 21)[1])
        number, in_flight, widths = 22, [], []
        for _ in range(5):
            while outage.ready_at(1.0) == 1.0 and number < 10_000 and outage.watches:
                outage.record_request(1.0, ticket(number))
                in_flight.append(ticket(number))
                number += 1
            widths.append(len(in_flight))
            for sent_ticket in in_flight:
                outage.works(sent_ticket)
            in_flight = []
        assert widths == [8, 16, 32, 64, 0]
        assert not outage.watches


@settings(max_examples=200)
@given(st.integers(0, 2**32))
def test_something_may_always_be_sent_again(seed: int) -> None:
    """Whatever happens, requests without an outcome are the only reason to wait for one."""
    chance, outage = random.Random(seed), Outage()
    now, number, in_flight, failing = 0.0, 0, [], False
    for _ in range(400):
        now += chance.random() * 0.3
        failing ^= chance.random() < 0.02
        ready = outage.ready_at(now)
        if ready == now and len(in_flight) < 40 and chance.random() < 0.7:
            number += 1
            in_flight.append(ticket(number, now, len(in_flight) + 1))
            outage.record_request(now, in_flight[-1])
        elif in_flight:
            ended = in_flight.pop(chance.randrange(len(in_flight)))
            if chance.random() < 0.1:
                outage.record_end(now, ended)
            elif failing:
                outage.record_failure(now, ended, chance.choice([BROKEN, REFUSED]), ended.order)
            else:
                outage.works(ended)
        else:
            assert ready < math.inf
