"""Token buckets as a property, and what a refused request is charged."""

import math

from hypothesis import given
from hypothesis import strategies as st

from llm_provider.simulator import Settings
from llm_provider.simulator._behaviour.rate_limits import RateLimits, TokenBucket

rates = st.floats(0.1, 1e6)
capacities = st.floats(1, 1e5)
steps = st.lists(st.tuples(st.floats(0, 100), st.floats(0.01, 1e4)), max_size=50)


@given(rates, capacities, steps)
def test_never_lets_through_more_than_capacity_and_refill(rate: float, capacity: float, steps: list) -> None:
    bucket, now, taken = TokenBucket(rate, capacity, now=0.0), 0.0, 0.0
    largest = 0.0
    for pause, amount in steps:
        now += pause
        if bucket.wait(amount, now) == 0:
            bucket.take(amount, now)
            taken += amount
            largest = max(largest, amount)
        assert bucket.level(now) <= capacity
    # A request larger than the bucket passes when the bucket is full, and is paid off later.
    assert taken <= (capacity + rate / 60 * now + max(0.0, largest - capacity)) * (1 + 1e-9)


@given(rates, capacities, steps)
def test_the_wait_is_exact(rate: float, capacity: float, steps: list) -> None:
    bucket, now = TokenBucket(rate, capacity, now=0.0), 0.0
    for pause, amount in steps:
        now += pause
        wait = bucket.wait(amount, now)
        if wait > 1e-3:
            assert bucket.wait(amount, now + wait * 0.5) > 0
            now += wait * 1.001 + 1e-6
        assert bucket.wait(amount, now + 1e-3) == 0
        now += 1e-3
        bucket.take(amount, now)


@given(rates, capacities, steps)
def test_the_state_is_truthful(rate: float, capacity: float, steps: list) -> None:
    bucket, now = TokenBucket(rate, capacity, now=0.0), 0.0
    for pause, amount in steps:
        now += pause
        bucket.take(amount, now)
        limit, left, reset = bucket.state(now)
        assert (limit, left) == (rate, max(0, math.floor(bucket.level(now))))
        assert left == 0 or bucket.wait(left, now) == 0
        refilled = TokenBucket(rate, capacity, now)
        refilled.take(capacity - bucket.level(now), now)
        assert refilled.state(now + reset * (1 + 1e-9) + 1e-6)[2] < 1e-3


def test_a_refused_request_is_charged_nothing() -> None:
    settings = Settings(requests_per_minute=60, burst=10, tokens_per_minute=60, token_burst=5)
    limits = RateLimits(settings, now=0.0)
    assert limits.admit(5, now=0.0) == 0
    assert limits.admit(5, now=0.0) == 5
    assert [state and state[1] for state in limits.state(now=0.0)] == [9, 0]


def test_a_rate_of_zero_refuses_for_ever() -> None:
    limits = RateLimits(Settings(requests_per_minute=0, burst=1), now=0.0)
    assert limits.admit(1, now=0.0) == 0
    assert limits.admit(1, now=1e9) == math.inf
