"""Verdicts on failures, and waits that providers ask for. Golden pairs have verdicts and headers."""

import datetime
import math
import random
import time
from typing import Any

import pytest
from hypothesis import given
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
from llm_provider._core.pace.retry import (
    LONGEST_RETRY_AFTER,
    ORDERLY_END,
    RetryBudget,
    Verdict,
    is_congestion,
    judge,
    retry_after,
)
from llm_provider._core.pace.timeouts import Deadline

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
                for _ in range(int(amount)):
                    budget.earn()
                earned += amount / 10
            elif step == "wait":
                now += amount
            else:
                sent += [now + wait for wait in waits(budget, int(amount), now)]
        for at in sent:
            assert sum(other <= at for other in sent) <= earned + 10 * (at - MONOTONIC) + 1e-6

    def test_no_more_are_saved_than_can_be_of_use_at_once(self) -> None:
        budget = RetryBudget()
        for _ in range(100_000):
            budget.earn()
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


class TestRetryAfter:
    def test_the_end_of_time_is_finite_and_not_waited_for(self) -> None:
        seconds = retry_after({"retry-after": "Fri, 31 Dec 9999 23:59:59 GMT"}, now=NOW)
        assert seconds is not None
        assert math.isfinite(seconds)
        assert not verdict(RateLimitError("x", retry_after=seconds)).retry

    @given(st.datetimes(timezones=st.just(datetime.UTC)).filter(lambda moment: moment.year >= 1900))
    def test_any_date_is_read(self, moment: datetime.datetime) -> None:
        text = moment.strftime("%a, %d %b ") + f"{moment.year:04} " + moment.strftime("%H:%M:%S GMT")
        expected = (moment.replace(microsecond=0) - NOW).total_seconds()
        assert retry_after({"retry-after": text}, now=NOW) == max(0.0, expected)
