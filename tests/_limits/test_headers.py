"""Rate-limit headers: those of each provider, texts that are no numbers, and predictions of a level."""

import pytest

from llm_provider._limits.headers import Allowance, Headroom, Level, duration, headroom


def headers_of(pattern: str, limit: str, remaining: str, reset: str) -> dict[str, str]:
    """The three headers of one limit."""
    values = {"limit": limit, "remaining": remaining, "reset": reset}
    return {pattern.format(name): value for name, value in values.items()}


OPENAI = {
    **headers_of("x-ratelimit-{}-requests", "600", "599", "100ms"),
    **headers_of("x-ratelimit-{}-tokens", "180000", "179500", "166ms"),
}
ANTHROPIC = {
    **headers_of("anthropic-ratelimit-requests-{}", "50", "49", "2026-11-20T12:00:02Z"),
    **headers_of("anthropic-ratelimit-tokens-{}", "48000", "47000", "2026-11-20T12:00:02Z"),
}
GROQ = {
    **headers_of("x-ratelimit-{}-requests", "14400", "14370", "2m59.56s"),
    **headers_of("x-ratelimit-{}-tokens", "18000", "17997", "7.66ms"),
}
TOGETHER = headers_of("x-ratelimit-{}", "600", "30", "1")

MISTRAL = {
    "x-ratelimit-limit-req-minute": "60",
    "x-ratelimit-remaining-req-minute": "59",
    "x-ratelimit-limit-tokens-minute": "50000",
    "x-ratelimit-remaining-tokens-minute": "47196",
    "x-ratelimit-limit-tokens-month": "4000000",
    "x-ratelimit-remaining-tokens-month": "3950246",
    "x-ratelimit-tokens-query-cost": "2804",
}
MISTRAL_BEFORE = {
    "ratelimitbysize-limit": "500000",
    "ratelimitbysize-reset": "40",
    "x-ratelimitbysize-limit-minute": "480000",
    "x-ratelimitbysize-remaining-minute": "467993",
}


@pytest.mark.parametrize(
    ("headers", "requests", "tokens"),
    [
        (OPENAI, Allowance(10.0, 599.0), Allowance(3000.0, 179500.0)),
        (ANTHROPIC, Allowance(50 / 60, 49.0), Allowance(800.0, 47000.0)),
        (GROQ, Allowance(30 / 179.56, 14370.0), Allowance(300.0, 17997.0)),
        (TOGETHER, Allowance(10.0, 30.0), None),
        (MISTRAL, Allowance(1.0, 59.0), Allowance(50_000 / 60, 47_196.0)),
        (MISTRAL_BEFORE, None, Allowance(8_000.0, 467_993.0)),
    ],
    ids=["openai", "anthropic", "groq, requests per day", "together", "mistral", "mistral before 2026"],
)
def test_each_provider_is_understood(
    headers: dict[str, str], requests: Allowance | None, tokens: Allowance | None
) -> None:
    assert headroom(headers) == Headroom(requests, tokens)


def test_answers_without_limits_say_nothing() -> None:
    assert headroom({"content-type": "application/json"}) is None
    assert headroom({"x-ratelimit-limit-requests": "600"}) is None


@pytest.mark.parametrize(
    "odd", ["nan", "inf", "-1", "+1", "1e400", "1_000", "", " 1", "٣", "0x10", "9" * 400, "1,000", "null"]
)
def test_what_is_no_plain_number_is_absent(odd: str) -> None:
    for name in ("limit", "remaining"):
        assert headroom({**TOGETHER, f"x-ratelimit-{name}": odd}) is None
    assert duration(odd) is None


def test_a_level_is_what_remained_plus_the_refill_minus_what_was_sent() -> None:
    level = Level()
    assert level.ready_at(0.0, used=100.0, amount=1.0, margin=1.0) == 0.0, "nothing is known yet"
    level.read(at=0.0, used=1.0, allowance=Allowance(rate=1.0, remaining=5.0))
    assert level.ready_at(0.0, used=4.0, amount=1.0, margin=1.0) == 0.0
    assert level.ready_at(0.0, used=5.0, amount=1.0, margin=1.0) == pytest.approx(1.0)
    assert level.ready_at(0.5, used=5.0, amount=1.0, margin=1.0) == pytest.approx(1.0)


def test_only_the_newest_request_counts() -> None:
    level = Level()
    level.read(at=2.0, used=20.0, allowance=Allowance(rate=1.0, remaining=5.0))
    level.read(at=1.0, used=10.0, allowance=Allowance(rate=99.0, remaining=500.0))
    assert level.ready_at(2.0, used=25.0, amount=1.0, margin=0.0) > 2.0


def test_no_more_is_waited_for_than_the_limit_holds() -> None:
    level = Level()
    level.read(at=0.0, used=1.0, allowance=Allowance(rate=1.0, remaining=0.0))
    assert level.ready_at(0.0, used=1.0, amount=1.0, margin=9.0) < 1.3
