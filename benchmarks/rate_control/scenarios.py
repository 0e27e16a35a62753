"""The scenarios. They were fixed before tuning, and the random ones were never used for it."""

from __future__ import annotations

import math
import random
from dataclasses import replace

from llm_provider._core.pace.headers import Allowance, Headroom

from .simulation import Bucket, Cap, FixedWindow, Provider, Scenario, Shedding, Workers


def bucket(rate: float, **facts: object) -> object:
    """A provider of `rate` requests per second, with a bucket of one second."""

    def build(chance: random.Random) -> Provider:
        return Provider([Bucket(rate, max(1.0, rate))], **facts)  # type: ignore[arg-type]

    return build


def shedding(
    rate: float, *shares: tuple[float, float], status: int = 429, retry_after: float | None = 1.0
) -> object:
    """A provider of `rate` requests per second, or without a limit, that also refuses a share at random."""

    def build(chance: random.Random) -> Provider:
        limits = [Bucket(rate, rate)] if rate < math.inf else []
        random_refusals = Shedding(shares, status, retry_after)
        return Provider([*limits], latency=2.0 if limits else 0.2, shedding=random_refusals)

    return build


def unequal(chance: random.Random) -> Provider:
    """The limit of one of several keys."""
    rate = math.exp(chance.uniform(0.0, math.log(20)))
    return Provider([Bucket(rate, max(1.0, rate))])


def truthful(provider: Provider) -> Provider:
    """The provider, with headers that tell the level of its buckets."""
    buckets = [limit for limit in provider.limits if isinstance(limit, Bucket)]

    def headers(now: float, chance: random.Random) -> Headroom:
        told: dict[str, Allowance] = {}
        for limit in buckets:
            limit.refill(now)
            told["tokens" if limit.of_tokens else "requests"] = limit.allowance()
        return Headroom(**told)

    return replace(provider, headers=headers)


def with_headers(rate: float) -> object:
    return lambda chance: truthful(bucket(rate)(chance))  # type: ignore[operator]


def foreign(kind: str) -> object:
    """600 requests per minute, with the headers of another limit."""

    def headers(now: float, chance: random.Random) -> Headroom:
        if kind == "large":
            return Headroom(requests=Allowance(rate=1000.0, remaining=59_990.0))
        if kind == "small":
            return Headroom(requests=Allowance(rate=1.0, remaining=59.0))
        limit = math.exp(chance.uniform(math.log(30), math.log(30_000)))
        return Headroom(requests=Allowance(limit / 60, math.floor(chance.random() * limit)))

    return lambda chance: replace(bucket(10.0)(chance), headers=headers)  # type: ignore[operator]


def token_limits(headers: bool = False, *, requests: float = 100.0) -> object:
    """5,000 tokens and 100 requests per second."""

    def build(chance: random.Random) -> Provider:
        provider = Provider([Bucket(5_000.0, 5_000.0, of_tokens=True), Bucket(requests, requests)])
        return truthful(provider) if headers else provider

    return build


def lognormal_tokens(chance: random.Random) -> float:
    return math.exp(chance.gauss(math.log(500) - 0.32, 0.8))


def window(retry_after: str) -> object:
    return lambda chance: Provider([FixedWindow(600, phase=chance.uniform(0, 60))], retry_after=retry_after)


BURSTS = tuple((30.0 * number, 200) for number in range(20))

SCENARIOS = [
    Scenario("600 RPM, 2 s", bucket(10.0), 600),
    Scenario(
        "600 RPM, no Retry-After, refusals count",
        bucket(10.0, retry_after="none", refusals_count=True),
        600,
    ),
    Scenario("6,000 RPM, 6 s", bucket(100.0, latency=6.0), 300),
    Scenario("60 RPM, 1 s", bucket(1.0, latency=1.0), 600),
    Scenario("step 20→5→20 a second", bucket(20.0), 300, changes=((100.0, 0.25), (200.0, 1.0))),
    Scenario("step 20→5 a second for good", bucket(20.0), 1800, changes=((60.0, 0.25),)),
    Scenario("concurrency cap 32", lambda chance: Provider([Cap(32)]), 300),
    Scenario("concurrency cap 32→96", lambda chance: Provider([Cap(32)]), 200, changes=((60.0, 3.0),)),
    Scenario(
        "concurrency cap 32 that answers 503",
        lambda chance: Provider([Cap(32)], retry_after="none", status=503),
        300,
    ),
    Scenario("600 RPM, truthful headers", with_headers(10.0), 600),
    Scenario("tokens bind", token_limits(), 600, tokens=lognormal_tokens, estimate_error=0.2),
    Scenario(
        "tokens bind, truthful headers",
        token_limits(headers=True),
        600,
        tokens=lognormal_tokens,
        estimate_error=0.2,
    ),
    Scenario(
        "tokens bind, estimates 3 times too high",
        token_limits(),
        600,
        tokens=lognormal_tokens,
        estimate_error=0.2,
        overestimate=3.0,
    ),
    Scenario(
        "the same, truthful headers",
        token_limits(headers=True),
        600,
        tokens=lognormal_tokens,
        estimate_error=0.2,
        overestimate=3.0,
    ),
    Scenario(
        "requests bind, sizes vary",
        token_limits(requests=5.0),
        600,
        tokens=lognormal_tokens,
        estimate_error=0.2,
    ),
    Scenario("bursts of 200 calls", bucket(10.0), 600, calls=0, arrivals=BURSTS),
    Scenario("429s take 2 s", bucket(10.0, refusal_latency=2.0), 600),
    Scenario("429s take 2 s, no Retry-After", bucket(10.0, refusal_latency=2.0, retry_after="none"), 600),
    Scenario("two models, one limit", bucket(10.0), 600, processes=2),
    Scenario("8 processes, 3,000 RPM", bucket(50.0), 600, processes=8),
    Scenario("64 processes, 3,000 RPM", bucket(50.0), 600, processes=64),
    Scenario("4 keys of 600 RPM", bucket(10.0), 300, keys=4),
    Scenario("4 keys of 60 to 1,200 RPM", unequal, 300, keys=4),
    Scenario("60 s calls, 600 RPM", bucket(10.0, latency=60.0), 600),
    Scenario("40 calls, 600 RPM", bucket(10.0), 600, calls=40),
    Scenario("40 calls, no limit", lambda chance: Provider([]), 600, calls=40),
    Scenario("no limit, max 256", lambda chance: Provider([]), 60, max_in_flight=256),
    Scenario("600 a minute's window", window("exact"), 600),
    Scenario("600 a minute's window, no Retry-After", window("none"), 600),
    Scenario("another's headers, too large", foreign("large"), 600),
    Scenario("another's headers, too small", foreign("small"), 600),
    Scenario("another's headers, noise", foreign("noise"), 600),
    Scenario(
        "64 workers, then a queue",
        lambda chance: Provider([], latency=2.0, workers=Workers(64), deadline=30.0),
        300,
    ),
    Scenario(
        "answers 3 times as slow after 30 s, max 100",
        lambda chance: Provider([], slower=(30.0, 3.0)),
        120,
        max_in_flight=100,
    ),
    Scenario(
        "800 calls of 0.3 s, cap 12",
        lambda chance: Provider([Cap(12)], latency=0.3, retry_after="none"),
        300,
        calls=800,
    ),
    Scenario("6,000 RPM and 5 % at random", shedding(100.0, (0.0, 0.05)), 300),
    Scenario(
        "6,000 RPM and 5 % at random, no Retry-After", shedding(100.0, (0.0, 0.05), retry_after=None), 300
    ),
    Scenario("600 RPM and 5 % of 529", shedding(10.0, (0.0, 0.05), status=529), 300),
    Scenario("600 RPM and 5 % at random", shedding(10.0, (0.0, 0.05)), 300),
    Scenario("6,000 RPM, and 5 % at random after 100 s", shedding(100.0, (100.0, 0.05)), 300),
    Scenario(
        "0, 20, 2, 10 % at random, max 32",
        shedding(math.inf, (15.0, 0.2), (30.0, 0.02), (45.0, 0.1)),
        60,
        max_in_flight=32,
        at_once=32,
    ),
    Scenario(
        "the same with 529",
        shedding(math.inf, (15.0, 0.2), (30.0, 0.02), (45.0, 0.1), status=529),
        60,
        max_in_flight=32,
        at_once=32,
    ),
]

FINITE = {"40 calls, 600 RPM", "40 calls, no limit", "800 calls of 0.3 s, cap 12"}
"""Scenarios judged by the time of the last answer instead of by answers per time."""


def _random_scenario(number: int, source: str = "held out") -> Scenario:
    """A held-out scenario: no part of the controller was chosen by its results."""
    chance = random.Random(f"{source} {number}")
    rate = math.exp(chance.uniform(math.log(0.5), math.log(200)))
    saved = math.exp(chance.uniform(math.log(0.2), math.log(60)))
    facts = {
        "latency": math.exp(chance.uniform(math.log(0.5), math.log(30))),
        "spread": chance.uniform(0.1, 0.8),
        "refusal_latency": math.exp(chance.uniform(math.log(0.03), 0.0)),
        "retry_after": chance.choice(["exact", "seconds", "none"]),
        "refusals_count": chance.random() < 0.3,
    }
    headers, kind = chance.random() < 0.3, chance.random()
    processes = chance.choice([1, 1, 1, 2, 4])
    changes: tuple[tuple[float, float], ...] = ()
    if chance.random() < 0.4:
        changes = ((100.0, math.exp(chance.uniform(-1.5, 1.0))), (200.0, 1.0))

    def build(_: random.Random) -> Provider:
        if kind < 0.2:
            return Provider([Cap(max(1, round(rate * facts["latency"])))], **facts)  # type: ignore[arg-type, operator]
        if kind < 0.35:
            return Provider([FixedWindow(max(1, round(60 * rate)))], **facts)  # type: ignore[arg-type]
        provider = Provider([Bucket(rate, max(1.0, rate * saved))], **facts)  # type: ignore[arg-type]
        return truthful(provider) if headers else provider

    bucketed = kind >= 0.35
    return Scenario(f"random {number}", build, 300, processes=processes, changes=changes if bucketed else ())


def _random_refusals(number: int, name: str, source: str) -> Scenario:
    """A held-out scenario that may also refuse a share of the requests at random."""
    scenario = _random_scenario(number, source)
    chance = random.Random(f"{source}, refusals {number}")
    share, status = chance.choice([0.0, 0.0, 0.02, 0.05, 0.1]), chance.choice([429, 529])
    random_refusals = Shedding(((0.0, share),), status, chance.choice([None, 1.0]))
    build = scenario.provider
    return replace(
        scenario,
        name=f"{name} {number}" + (f", {share:.0%} of {status}" if share else ""),
        provider=lambda chance: replace(build(chance), shedding=random_refusals),
    )


HELD_OUT = [_random_scenario(number) for number in range(10)]
HELD_OUT_2 = [_random_refusals(number, "second", "held out 2") for number in range(10)]
"""Made after the results of the first ones had been seen."""
HELD_OUT_3 = [_random_refusals(number, "third", "held out 3") for number in range(10)]
"""Made after the results of the second ones had been seen. Constants are not chosen by these."""
