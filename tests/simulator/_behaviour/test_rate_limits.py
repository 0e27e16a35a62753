"""Token buckets as a property, and limits as a client meets them."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_provider.simulator import Settings
from llm_provider.simulator._behaviour.rate_limits import RateLimits, TokenBucket

if TYPE_CHECKING:
    from llm_provider.simulator import Simulator

    from ..conftest import Post

MESSAGES = {"model": "claude-sonnet-5-5", "max_tokens": 10, "messages": [{"role": "user", "content": "hi"}]}
GENERATE = ("/gemini/v1/models/gemini-4-argon:generateContent", {"contents": [{"parts": [{"text": "hi"}]}]})

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
    limits = RateLimits(
        Settings(requests_per_minute=60, burst=10, tokens_per_minute=60, token_burst=5), now=0.0
    )
    assert limits.admit(5, now=0.0) == 0
    assert limits.admit(5, now=0.0) == 5
    requests, tokens = limits.state(now=0.0)
    assert requests is not None
    assert tokens is not None
    assert (requests[1], tokens[1]) == (9, 0)


def test_a_rate_of_zero_refuses_for_ever() -> None:
    limits = RateLimits(Settings(requests_per_minute=0, burst=1), now=0.0)
    assert limits.admit(1, now=0.0) == 0
    assert limits.admit(1, now=1e9) == math.inf


def test_openai_headers(simulator: Simulator, chat: Post) -> None:
    simulator.configure(requests_per_minute=60, burst=2, tokens_per_minute=6000, token_burst=1000)
    first, _, third = (chat("openai", "hi") for _ in range(3))
    assert first.headers["x-ratelimit-limit-requests"] == "60"
    assert first.headers["x-ratelimit-remaining-requests"] == "1"
    assert re.fullmatch(r"\d+ms|1s", first.headers["x-ratelimit-reset-requests"])
    assert first.headers["x-ratelimit-limit-tokens"] == "6000"
    assert int(first.headers["x-ratelimit-remaining-tokens"]) == 1000 - 1 - 2
    assert third.status == 429
    assert third.json["error"]["code"] == "rate_limit_exceeded"
    assert third.headers["x-ratelimit-remaining-requests"] == "0"
    assert third.headers["retry-after"] == "1"
    assert 0 < int(third.headers["retry-after-ms"]) <= 1000
    assert simulator.ledger().rate_limited == 1


def test_anthropic_headers(simulator: Simulator, post: Post) -> None:
    simulator.configure(requests_per_minute=6, burst=1)
    before = datetime.now(UTC)
    first, second = (post("/anthropic/v1/messages", MESSAGES) for _ in range(2))
    assert first.headers["anthropic-ratelimit-requests-limit"] == "6"
    assert first.headers["anthropic-ratelimit-requests-remaining"] == "0"
    reset = datetime.fromisoformat(first.headers["anthropic-ratelimit-requests-reset"])
    assert 9 <= (reset - before).total_seconds() <= 30
    assert (second.status, second.headers["retry-after"]) == (429, "10")
    assert second.json["error"]["type"] == "rate_limit_error"


def test_gemini_tells_only_in_the_body(simulator: Simulator, post: Post) -> None:
    simulator.configure(requests_per_minute=6, burst=1)
    first, second = (post(*GENERATE) for _ in range(2))
    assert not [name for name in first.headers if "ratelimit" in name]
    assert second.status == 429
    delay = next(one for one in second.json["error"]["details"] if "RetryInfo" in one["@type"])["retryDelay"]
    assert 9 < float(delay.removesuffix("s")) <= 10


def test_headers_can_be_left_out(simulator: Simulator, chat: Post) -> None:
    simulator.configure(requests_per_minute=60, rate_limit_headers=False)
    assert not [name for name in chat("openai", "hi").headers if "ratelimit" in name]


@pytest.mark.parametrize(("scope", "passing"), [("provider", 1), ("model", 2), ("key", 2)])
def test_what_shares_a_limit(simulator: Simulator, chat: Post, scope: str, passing: int) -> None:
    simulator.configure("groq", requests_per_minute=1, burst=1, limits_per=scope)
    answers = []
    for number in (1, 1, 2, 2):
        fields = {"model": f"m{number}"} if scope == "model" else {"content": "hi"}
        answers.append(chat("groq", fields, {"authorization": f"Bearer key{number}"}).status)
    assert answers.count(200) == passing
    assert chat("openai", "hi").status == 200


def test_keys_with_limits_of_their_own(simulator: Simulator, chat: Post) -> None:
    simulator.configure("groq", limits_per="key", key_limits="key1=10, key2=20")

    def passing(key: str) -> int:
        statuses = [chat("groq", "hi", {"authorization": f"Bearer {key}"}).status for _ in range(3)]
        return statuses.count(200)

    assert [passing("key1"), passing("key2"), passing("key3")] == [1, 2, 3]
    for nonsense in ("key1", "key1=", "=5", "key1=-5"):
        with pytest.raises(ValueError, match="key_limits"):
            simulator.configure(key_limits=nonsense)


def test_concurrency_cap(simulator: Simulator, chat: Post) -> None:
    simulator.configure(max_concurrent=0)
    answer = chat("openai", "hi")
    assert answer.status == 429
    assert "retry-after" not in answer.headers
    simulator.configure(max_concurrent=1)
    assert chat("openai", "hi").status == 200
    assert chat("openai", "hi").status == 200
