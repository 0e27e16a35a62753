"""What failures lead to: verdicts on retries, and when a scope is down, its probes and how work resumes.

Golden pairs have verdicts, and what is a failure of an outage and what an answer.
"""

import datetime
import itertools
import math
import random
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llm_provider._core import errors
from llm_provider._core.errors import (
    APIConnectionError,
    APIResponseValidationError,
    APITimeoutError,
    InternalServerError,
    LLMError,
    OverloadedError,
    RateLimitError,
)
from llm_provider._core.pace.call_limits import Deadline
from llm_provider._core.pace.failures import (
    LONGEST_RETRY_AFTER,
    ORDERLY_END,
    Outage,
    RetryBudget,
    Verdict,
    is_congestion,
    judge,
)
from llm_provider._core.pace.state import Ticket

NOW = datetime.datetime(2026, 11, 20, 12, 0, 0, tzinfo=datetime.UTC)


def verdict(error: LLMError, attempts: int = 1, max_retries: int = 6, **circumstances: Any) -> Verdict:
    defaults = {"random_source": random.Random(0), "budget": RetryBudget(), "now": MONOTONIC}
    return judge(error, attempts=attempts, max_retries=max_retries, **{**defaults, **circumstances})


MONOTONIC = 1000.0
"""A moment of the clock of retry budgets."""


def due_in(seconds: float, allowed: float = 5) -> Deadline:
    return Deadline(allowed, time.perf_counter() + seconds)


class TestJudge:
    def test_jitter_is_full(self) -> None:
        source = random.Random(1)
        delays = [verdict(InternalServerError("x"), 3, random_source=source).delay for _ in range(1000)]
        assert min(delays) < 0.1
        assert max(delays) > 1.9
        assert 0.9 < sum(delays) / len(delays) < 1.1

    def test_a_wait_past_the_deadline_is_not_begun(self) -> None:
        near = due_in(2)
        assert verdict(RateLimitError("x", retry_after=1.0), deadline=near).retry
        refused = verdict(RateLimitError("x", retry_after=30.0), deadline=near)
        assert not refused.retry
        assert refused.reason.startswith("asked to wait 30 s: the deadline of 5 s is ")
        passed = verdict(InternalServerError("x"), deadline=due_in(-1))
        assert passed == Verdict(
            retry=False, reason="not sent again: the deadline of 5 s is 0.0 s away", too_late=True
        )

    def test_a_retry_during_an_outage_takes_nothing_from_the_budget(self) -> None:
        budget = RetryBudget()
        assert verdict(InternalServerError("x"), 6, budget=budget, down=True) == Verdict(retry=True)
        assert waits(budget, 10) == [0.0] * 10


def waits(budget: RetryBudget, retries: int, now: float = MONOTONIC) -> list[float]:
    return [budget.spend(now) for _ in range(retries)]


class TestRetryBudget:
    @pytest.mark.parametrize("kind", [InternalServerError, APITimeoutError, APIResponseValidationError])
    def test_retries_beyond_ten_are_slowed_to_ten_a_second(self, kind: type[LLMError]) -> None:
        budget = RetryBudget()
        verdicts = [verdict(kind("x"), budget=budget) for _ in range(60)]
        assert all(verdict.retry for verdict in verdicts)
        assert all(verdict.delay <= 0.5 for verdict in verdicts[:10])
        assert verdicts[-1].delay == pytest.approx(5.0)

    @pytest.mark.parametrize(
        "error",
        [
            RateLimitError("x"),
            OverloadedError("x"),
            APIConnectionError("x", code=ORDERLY_END, maybe_billed=True),
            APIConnectionError("refused"),
            APITimeoutError("x", phase="connect", maybe_billed=False),
        ],
    )
    def test_congestion_and_what_reached_no_server_use_none_and_need_none(self, error: LLMError) -> None:
        budget = RetryBudget()
        for _ in range(50):
            assert verdict(error, budget=budget).delay <= 0.5
        assert waits(budget, 10) == [0.0] * 10
        waits(budget, 1000)
        assert verdict(error, budget=budget).delay <= 0.5

    def test_a_connection_that_broke_uses_one(self) -> None:
        budget = RetryBudget()
        for _ in range(20):
            verdict(APIConnectionError("broke", maybe_billed=True), budget=budget)
        assert budget.spend(MONOTONIC) == pytest.approx(1.1)

    @given(
        st.lists(
            st.one_of(
                st.tuples(st.just("answer"), st.integers(1, 400)),
                st.tuples(st.just("retry"), st.integers(1, 30)),
                st.tuples(st.just("wait"), st.floats(0, 20)),
            ),
            max_size=60,
        )
    )
    def test_retries_are_10_a_tenth_of_answers_and_10_a_second(self, steps: list[tuple[str, float]]) -> None:
        budget, now, earned, sent = RetryBudget(), MONOTONIC, 10.0, []
        for step, amount in steps:
            if step == "answer":
                budget.answers += int(amount)
                earned += amount / 10
            elif step == "wait":
                now += amount
            else:
                sent += [now + wait for wait in waits(budget, int(amount), now)]
        for at in sent:
            assert sum(other <= at for other in sent) <= earned + 10 * (at - MONOTONIC) + 1e-6

    def test_no_more_are_saved_than_can_be_of_use_at_once(self) -> None:
        budget = RetryBudget()
        budget.answers += 100_000
        assert waits(budget, 2000).count(0.0) == 1000


def test_congestion_is_too_much_and_not_something_broken() -> None:
    congestion = {
        kind
        for kind in vars(errors).values()
        # Those with arguments of their own are raised here, not by a provider.
        if isinstance(kind, type) and issubclass(kind, LLMError) and kind.__init__ is LLMError.__init__
        if is_congestion(kind("x"))
    }
    assert congestion == {RateLimitError, OverloadedError}
    # A wait that nobody waits for is none.
    assert is_congestion(RateLimitError("slow", retry_after=LONGEST_RETRY_AFTER))
    assert not is_congestion(RateLimitError("tomorrow", retry_after=LONGEST_RETRY_AFTER + 1))


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
