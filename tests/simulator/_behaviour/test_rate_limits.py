"""Token buckets as a property, and limits as a client meets them."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from llm_provider.simulator import Settings
from llm_provider.simulator._behaviour.rate_limits import RateLimits, TokenBucket
from simulator.exchanges import REQUESTS

if TYPE_CHECKING:
    from llm_provider.simulator import Simulator

    from ..conftest import Post

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


def test_openai_headers(simulator: Simulator, chat: Post) -> None:
    simulator.configure(requests_per_minute=60, burst=2, tokens_per_minute=6000, token_burst=1000)
    first, _, third = (chat("openai", "hi") for _ in range(3))
    limits = {name: value for name, value in first.headers.items() if name.startswith("x-ratelimit-")}
    assert re.fullmatch(r"\d+ms|1s", limits.pop("x-ratelimit-reset-requests"))
    assert re.fullmatch(r"\d+ms|1s", limits.pop("x-ratelimit-reset-tokens"))
    assert limits == {
        "x-ratelimit-limit-requests": "60",
        "x-ratelimit-remaining-requests": "1",
        "x-ratelimit-limit-tokens": "6000",
        "x-ratelimit-remaining-tokens": str(1000 - 1 - 2),
    }
    assert (third.status, third.json["error"]["code"]) == (429, "rate_limit_exceeded")
    assert (third.headers["x-ratelimit-remaining-requests"], third.headers["retry-after"]) == ("0", "1")
    assert 0 < int(third.headers["retry-after-ms"]) <= 1000
    assert simulator.ledger().rate_limited == 1


def test_anthropic_headers(simulator: Simulator, post: Post) -> None:
    simulator.configure(requests_per_minute=6, burst=1)
    before = datetime.now(UTC)
    first, second = (post(*REQUESTS["anthropic"]) for _ in range(2))
    assert first.headers["anthropic-ratelimit-requests-limit"] == "6"
    assert first.headers["anthropic-ratelimit-requests-remaining"] == "0"
    reset = datetime.fromisoformat(first.headers["anthropic-ratelimit-requests-reset"])
    assert 9 <= (reset - before).total_seconds() <= 30
    assert (second.status, second.headers["retry-after"]) == (429, "10")
    assert second.json["error"]["type"] == "rate_limit_error"


def test_gemini_tells_only_in_the_body(simulator: Simulator, post: Post) -> None:
    simulator.configure(requests_per_minute=6, burst=1)
    first, second = (post(*REQUESTS["gemini"]) for _ in range(2))
    assert not [name for name in first.headers if "ratelimit" in name]
    assert second.status == 429
    details = {detail["@type"]: detail for detail in second.json["error"]["details"]}
    delay = details["type.googleapis.com/google.rpc.RetryInfo"]["retryDelay"]
    assert 9 < float(delay.removesuffix("s")) <= 10
