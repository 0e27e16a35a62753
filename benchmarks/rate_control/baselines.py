"""Policies: our controller, others rebuilt from their published descriptions, and the oracle.

All of them retry for ever, because the comparison is about the traffic, not about the number of retries.
"""

from __future__ import annotations

import math
import random

from llm_provider._core.pace.controller import AdaptiveController
from llm_provider._core.pace.headers import Headroom
from llm_provider._core.pace.state import Ticket

from .simulation import Policy, Provider


class Ours(Policy):
    """The controller of `llm_provider`."""

    def __init__(self, provider: Provider, max_in_flight: int, source: random.Random) -> None:
        super().__init__(provider, max_in_flight, source)
        self.controller = AdaptiveController(random_source=source)
        self.succeeded = self.controller.record_success
        self.failed = self.controller.record_failure

    def ready_at(self, now: float, tokens: float) -> float:
        return self.controller.ready_at(now, tokens, self.max_in_flight, self.at_once)

    def sent(self, now: float, tokens: float) -> Ticket:
        return self.controller.record_request(now, tokens, self.at_once)

    def refused(
        self, now: float, ticket: Ticket, retry_after: float | None, headroom: Headroom | None, attempts: int
    ) -> float:
        alone = self.controller.record_refusal(now, ticket, retry_after, headroom)
        return self.delay(retry_after, attempts) if alone else 0.0

    def overloaded(
        self, now: float, ticket: Ticket, retry_after: float | None, headroom: Headroom | None, attempts: int
    ) -> float:
        alone = self.controller.record_overload(now, ticket, retry_after)
        return self.delay(retry_after, attempts) if alone else 0.0

    def shown(self, now: float) -> tuple[float, float]:
        return self.controller.rate, self.controller.window


class Window(Policy):
    """Common part of most baselines: a window of requests in flight, and calls that sleep by themselves."""

    sleeping_holds_a_slot = False

    def __init__(self, provider: Provider, max_in_flight: int, source: random.Random) -> None:
        super().__init__(provider, max_in_flight, source)
        self.size = 1.0

    def ready_at(self, now: float, tokens: float) -> float:
        return now if self.in_flight < max(1, int(self.size)) else math.inf

    def succeeded(self, now: float, ticket: float, headroom: Headroom | None, used: float | None) -> None:
        self.in_flight -= 1
        self.grow(now)

    def refused(
        self, now: float, ticket: float, retry_after: float | None, headroom: Headroom | None, attempts: int
    ) -> float:
        self.in_flight -= not self.sleeping_holds_a_slot
        self.cut(now, ticket, retry_after)
        return self.delay(retry_after, attempts)

    def woke(self, now: float) -> None:
        self.in_flight -= self.sleeping_holds_a_slot

    def shown(self, now: float) -> tuple[float, float]:
        return math.inf, self.size

    def grow(self, now: float) -> None:
        """Answer a success."""

    def cut(self, now: float, sent: float, retry_after: float | None) -> None:
        """Answer a refusal."""


class FirstVersion(Window):
    """A semaphore: +1 per success up to 32, halved by every refusal down to 4; sleeping calls hold a slot."""

    sleeping_holds_a_slot = True

    def __init__(self, provider: Provider, max_in_flight: int, source: random.Random) -> None:
        super().__init__(provider, max_in_flight, source)
        self.size = 32.0

    def grow(self, now: float) -> None:
        self.size = min(32.0, self.size + 1)

    def cut(self, now: float, sent: float, retry_after: float | None) -> None:
        self.size = max(4.0, self.size / 2)


class AIMD(Window):
    """Chiu and Jain: +1 per window, halved once per episode, down to 1; a refused call sleeps by itself."""

    def __init__(self, provider: Provider, max_in_flight: int, source: random.Random) -> None:
        super().__init__(provider, max_in_flight, source)
        self.size, self._last_cut, self._open = min(32.0, max_in_flight), -math.inf, True

    def grow(self, now: float) -> None:
        self.size = min(self.max_in_flight, self.size + (1 if self._open else 1 / self.size))

    def cut(self, now: float, sent: float, retry_after: float | None) -> None:
        if sent > self._last_cut:
            self.size, self._last_cut, self._open = max(1.0, self.size / 2), now, False


class BareSDK(Window):
    """The openai SDK behind a semaphore: a sleeping call keeps its place, and nothing else is held back.

    Its `max_retries` is 2, but here it sends until there is an answer.
    """

    sleeping_holds_a_slot = True

    def __init__(self, provider: Provider, max_in_flight: int, source: random.Random) -> None:
        super().__init__(provider, max_in_flight, source)
        self.size = max_in_flight

    def delay(self, retry_after: float | None, attempts: int) -> float:
        """Retry-After up to a minute, else half a second, doubled per attempt up to 8 s, less a quarter."""
        if retry_after is not None and 0 < retry_after <= 60:
            return retry_after
        return min(8.0, 0.5 * 2.0 ** min(attempts - 1, 16)) * self.random.uniform(0.75, 1.0)


class InspectAI(Window):
    """inspect_ai's adaptive connections, from its documentation (inspect.aisi.org.uk, models-concurrency).

    4 to 100 at once, starting at 20: doubled per clean round until the first refusal, then 5 % more per
    round; four fifths per episode, at most every 15 s or Retry-After. Retries wait 3 s, doubled each time, or
    longer if Retry-After requires it. They hold their slot, because the samples in flight are limited too.
    """

    sleeping_holds_a_slot = True

    def __init__(self, provider: Provider, max_in_flight: int, source: random.Random) -> None:
        super().__init__(provider, max_in_flight, source)
        self.max_in_flight = min(100, max_in_flight)
        self.size, self._slow_start, self._clean, self._no_cut_before = 20.0, True, 0, -math.inf

    def grow(self, now: float) -> None:
        self._clean += 1
        if self._clean >= self.size:
            self._clean = 0
            larger = self.size * 2 if self._slow_start else self.size + max(1.0, 0.05 * self.size)
            self.size = min(self.max_in_flight, larger)

    def cut(self, now: float, sent: float, retry_after: float | None) -> None:
        self._clean = 0
        self._slow_start = False
        if now >= self._no_cut_before:
            self.size = max(4.0, self.size * 0.8)
            self._no_cut_before = now + max(15.0, retry_after or 0.0)

    def delay(self, retry_after: float | None, attempts: int) -> float:
        backoff = min(1800.0, 3.0 * 2.0 ** min(attempts - 1, 16)) * self.random.uniform(0.5, 1.0)
        return max(retry_after or 0.0, backoff)


class Botocore(Policy):
    """botocore's adaptive mode, from the AWS SDK reference guide (retry behaviour).

    CUBIC on the send rate (decrease to 0.7, scale 0.4), which is measured in bins of half a second smoothed
    by 0.8; a token bucket that is off until the first refusal; full-jitter back-off up to 20 s. It has no
    window and ignores Retry-After.
    """

    def __init__(self, provider: Provider, max_in_flight: int, source: random.Random) -> None:
        super().__init__(provider, max_in_flight, source)
        self._rate = math.inf
        self._capacity, self._level, self._at = 1.0, 0.0, 0.0
        self._measured, self._bin, self._count = 0.0, 0.0, 0
        self._last_max, self._last_cut, self._inflection = 0.0, 0.0, 0.0

    def ready_at(self, now: float, tokens: float) -> float:
        if self.in_flight >= self.max_in_flight:
            # It has no window of its own: the number of its callers' threads bounds it.
            return math.inf
        if self._rate == math.inf:
            return now
        self._refill(now)
        return now if self._level >= 1 - 1e-9 else now + (1 - self._level) / self._rate

    def sent(self, now: float, tokens: float) -> float:
        self.in_flight += 1
        if self._rate < math.inf:
            self._level -= 1
        return now

    def succeeded(self, now: float, ticket: float, headroom: Headroom | None, used: float | None) -> None:
        self.in_flight -= 1
        self._measure(now)
        if self._rate < math.inf:
            since = now - self._last_cut - self._inflection
            self._limit(now, 0.4 * since**3 + self._last_max)

    def refused(
        self, now: float, ticket: float, retry_after: float | None, headroom: Headroom | None, attempts: int
    ) -> float:
        self.in_flight -= 1
        self._measure(now)
        self._last_max = self._measured if self._rate == math.inf else min(self._measured, self._rate)
        self._inflection = (self._last_max * 0.3 / 0.4) ** (1 / 3)
        self._last_cut = now
        self._limit(now, self._last_max * 0.7)
        return max(1e-3, self.random.random() * min(20.0, 2.0 ** min(attempts, 16)))

    def shown(self, now: float) -> tuple[float, float]:
        return self._rate, math.inf

    def _refill(self, now: float) -> None:
        if self._rate < math.inf:
            self._level = min(self._capacity, self._level + (now - self._at) * self._rate)
        self._at = now

    def _limit(self, now: float, rate: float) -> None:
        self._refill(now)
        self._rate = max(0.5, min(rate, 2 * self._measured))
        self._capacity = max(1.0, self._rate)
        self._level = min(self._level, self._capacity)

    def _measure(self, now: float) -> None:
        self._count += 1
        slot = math.floor(now * 2) / 2
        if slot > self._bin:
            current = self._count / (slot - self._bin)
            self._measured = current * 0.8 + self._measured * 0.2
            self._count, self._bin = 0, slot


class Oracle(Policy):
    """Sends exactly when the provider would admit."""

    omniscient = True

    def ready_at(self, now: float, tokens: float) -> float:
        if self.in_flight >= self.max_in_flight:
            return math.inf
        return now + self.provider.wait(now, tokens)


POLICIES = {
    "this": Ours,
    "first version": FirstVersion,
    "AIMD": AIMD,
    "inspect_ai": InspectAI,
    "botocore": Botocore,
}
