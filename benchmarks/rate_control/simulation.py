"""A provider and its clients in simulated time: one heap of events, no clock, no sockets.

A request reaches the provider at the moment at which it is sent, and is admitted or refused at once. The
answer comes back after the latency. A `Policy` sends: our controller, a baseline, or the oracle, which may
read the provider's counters. Times are seconds, rates are per second. `tokens` is 1 where a limit counts
requests only.
"""

from __future__ import annotations

import heapq
import math
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from llm_provider._core.pace.headers import Allowance, Headroom

TIMER_STEP = 0.001
"""Seconds. A timer of an event loop fires no earlier than this."""

_MASK = 2**64 - 1

MOST_REQUESTS = 300_000
"""A run ends after so many requests. A storm of refusals is obvious by then."""


class Fate(random.Random):
    """A source that is seeded for each request: SplitMix64, as the seeding of a Mersenne twister is slow."""

    def seed(self, number: object = 0, version: int = 2) -> None:
        """Begin again from a number."""
        assert isinstance(number, int)
        self._state, self.gauss_next = number, None

    def random(self) -> float:
        """A number from 0 to 1."""
        self._state = mixed = (self._state + 0x9E3779B97F4A7C15) & _MASK
        mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 & _MASK
        mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & _MASK
        return ((mixed ^ mixed >> 31) >> 11) / 2.0**53


class Limit:
    """A limit of a provider."""

    def wait(self, now: float, tokens: float) -> float:
        """Seconds until a request may be admitted: 0 for now, infinity if an answer must come first."""
        raise NotImplementedError

    def take(self, now: float, tokens: float, *, refused: bool) -> None:
        """Count an admitted request, or a refused one if the provider counts those too."""
        raise NotImplementedError

    def release(self) -> None:
        """Record the answer to an admitted request."""


class Bucket(Limit):
    """A token bucket: `rate` units a second, at most `capacity` of them saved up."""

    def __init__(self, rate: float, capacity: float, *, of_tokens: bool = False) -> None:
        self.rate, self.capacity, self.of_tokens = rate, capacity, of_tokens
        self.level, self._at = capacity, 0.0
        self._saved = capacity / rate

    def refill(self, now: float) -> None:
        self.level = min(self.capacity, self.level + (now - self._at) * self.rate)
        self._at = now

    def change(self, now: float, rate: float) -> None:
        self.refill(now)
        # A bucket that holds less than one request would never admit any.
        self.rate, self.capacity = rate, max(1.0, self._saved * rate)

    def wait(self, now: float, tokens: float) -> float:
        self.refill(now)
        missing = (min(tokens, self.capacity) if self.of_tokens else 1.0) - self.level
        return missing / self.rate if missing > 1e-9 else 0.0

    def take(self, now: float, tokens: float, *, refused: bool) -> None:
        self.level -= tokens if self.of_tokens else 1.0
        if refused:
            self.level = max(0.0, self.level)

    def allowance(self) -> Allowance:
        return Allowance(rate=self.rate, remaining=math.floor(max(0.0, self.level)))


class FixedWindow(Limit):
    """`limit` requests in each minute of the provider's clock."""

    def __init__(self, limit: float, period: float = 60.0, phase: float = 0.0) -> None:
        self.limit, self.period, self.phase = limit, period, phase
        self._window, self._used = -1, 0.0

    def wait(self, now: float, tokens: float) -> float:
        window = math.floor((now + self.phase) / self.period)
        if window != self._window:
            self._window, self._used = window, 0.0
        return 0.0 if self._used < self.limit else (window + 1) * self.period - self.phase - now

    def take(self, now: float, tokens: float, *, refused: bool) -> None:
        self._used += 1


class Cap(Limit):
    """At most `cap` requests at once."""

    def __init__(self, cap: int) -> None:
        self.cap = self.rate = cap
        self._held = 0

    def change(self, now: float, rate: float) -> None:
        self.cap = round(rate)

    def wait(self, now: float, tokens: float) -> float:
        return 0.0 if self._held < self.cap else math.inf

    def take(self, now: float, tokens: float, *, refused: bool) -> None:
        self._held += not refused

    def release(self) -> None:
        self._held -= 1


class Workers:
    """No limit, but only so many requests are served at once. The others wait, and the latency grows."""

    def __init__(self, count: int) -> None:
        self._free = [0.0] * count

    def delay(self, now: float, service: float) -> float:
        """Seconds from arrival to answer."""
        begins = max(now, self._free[0])
        heapq.heapreplace(self._free, begins + service)
        return begins + service - now

    def queued(self, now: float) -> bool:
        return self._free[0] > now


@dataclass(frozen=True)
class Shedding:
    """A share of the requests is refused at random, at every rate, and does not use up a limit."""

    shares: tuple[tuple[float, float], ...]
    """(time, share): from this time on, this share."""
    status: int = 429
    retry_after: float | None = None
    with_headers: bool = False
    """Whether these refusals have the rate-limit headers of the provider."""

    def refuses(self, now: float, chance: random.Random) -> bool:
        """Whether one request is refused."""
        share = next((share for since, share in reversed(self.shares) if now >= since), 0.0)
        return chance.random() < share


@dataclass
class Provider:
    """The limits, and the form of the answers."""

    limits: list[Limit]
    latency: float = 2.0
    """Mean seconds to a good answer; lognormal with `spread` as its sigma."""
    spread: float = 0.3
    refusal_latency: float = 0.05
    retry_after: str = "exact"
    """exact; seconds (rounded up to whole seconds); none."""
    refusals_count: bool = False
    """Whether refused requests use up the limit too."""
    headers: Callable[[float, random.Random], Headroom] | None = None
    headers_on_refusals: bool = True
    """Whether the answers that refuse because of a limit have them too."""
    workers: Workers | None = None
    deadline: float = math.inf
    """Seconds after which the client gives up a request."""
    shedding: Shedding | None = None
    status: int = 429
    """Of the answers that refuse because of a limit."""
    slower: tuple[float, float] = (math.inf, 1.0)
    """(time, factor): from this time on, good answers take so much longer."""

    def wait(self, now: float, tokens: float) -> float:
        """Seconds until a request of this size is admitted; infinity if an answer must come first."""
        longest = 0.0
        for limit in self.limits:
            longest = max(longest, limit.wait(now, tokens))
        if self.workers and self.workers.queued(now):
            return math.inf
        return longest

    def offer(self, now: float, tokens: float) -> float:
        """Admit a request and return 0, or refuse it and return the seconds until it would be admitted."""
        longest = 0.0
        for limit in self.limits:
            longest = max(longest, limit.wait(now, tokens))
        if longest == 0.0 or self.refusals_count:
            for limit in self.limits:
                limit.take(now, tokens, refused=longest > 0)
        return longest

    def told(self, seconds: float) -> float | None:
        """The Retry-After of a refusal."""
        if self.retry_after == "none" or seconds == math.inf:
            return None
        return math.ceil(seconds) if self.retry_after == "seconds" else math.ceil(seconds * 1000) / 1000


class Policy:
    """Decides when requests are sent; counts those in flight."""

    omniscient = False
    """Whether it gets the tokens that the provider will count instead of the client's estimate."""
    at_once = 0
    """Requests that may be sent at once at the start."""

    def __init__(self, provider: Provider, max_in_flight: int, source: random.Random) -> None:
        self.provider, self.max_in_flight, self.random = provider, max_in_flight, source
        self.in_flight = 0

    def ready_at(self, now: float, tokens: float) -> float:
        """The time at which a request may be sent: `now`, later, or infinity if an answer must come first."""
        raise NotImplementedError

    def sent(self, now: float, tokens: float) -> Any:
        """Count a request as sent. Returns a ticket, which comes back with the answer."""
        self.in_flight += 1
        return now

    def succeeded(self, now: float, ticket: Any, headroom: Headroom | None, used: float | None) -> None:
        """Record a served request. `used` is its number of tokens, if tokens are counted."""
        self.in_flight -= 1

    def refused(
        self, now: float, ticket: Any, retry_after: float | None, headroom: Headroom | None, attempts: int
    ) -> float:
        """Record a refused request. Returns the seconds that its call sleeps by itself."""
        self.in_flight -= 1
        return 0.0

    def overloaded(
        self, now: float, ticket: Any, retry_after: float | None, headroom: Headroom | None, attempts: int
    ) -> float:
        """Record a request that was refused with 529. Returns the seconds that its call sleeps by itself."""
        return self.refused(now, ticket, retry_after, headroom, attempts)

    def failed(self, now: float, ticket: Any) -> None:
        """Record a request that was given up."""
        self.in_flight -= 1

    def woke(self, now: float) -> None:
        """Record that a call has slept."""

    def shown(self, now: float) -> tuple[float, float]:
        """Rate and window, for the curves."""
        return math.inf, math.inf

    def delay(self, retry_after: float | None, attempts: int) -> float:
        """Retry-After, else full jitter up to half a second, doubled per attempt, as `judge` has it."""
        if retry_after is not None:
            return max(retry_after, 1e-3)
        return self.random.uniform(1e-3, min(30.0, 0.5 * 2.0 ** min(attempts - 1, 16)))


@dataclass(slots=True)
class Call:
    """A call, which is sent until it is answered."""

    tokens: float
    """The client's estimate."""
    charged: float
    """The tokens that the provider counts."""
    number: int
    attempts: int = 0


@dataclass(slots=True)
class Process:
    """One client: its calls, and for each of its API keys a policy and a provider."""

    keys: list[tuple[Policy, Provider]]
    waiting: float
    """Calls that were never sent; infinite for an endless backlog."""
    again: deque[Call] = field(default_factory=deque)
    next_call: Call | None = None
    timer: float = math.inf
    refused: int = 0
    lost: int = 0
    done: int = 0
    done_late: int = 0
    """Answers after the first minute, from which fairness is computed."""
    attempts: list[int] = field(default_factory=list)


@dataclass
class Scenario:
    """A provider, the processes that send to it, and their calls. Its randomness comes from the seed."""

    name: str
    provider: Callable[[random.Random], Provider]
    duration: float = 300.0
    processes: int = 1
    keys: int = 1
    """API keys of each process, with separate limits. A call is sent with the key that is free first."""
    calls: float = math.inf
    """Calls of each process at the start."""
    arrivals: tuple[tuple[float, int], ...] = ()
    """More calls: (time, how many), for each process."""
    changes: tuple[tuple[float, float], ...] = ()
    """Changes of the first limit: (time, factor on its first rate)."""
    max_in_flight: int = 1000
    """`max_concurrent` of each process."""
    at_once: int = 0
    """Requests that are sent at once at the start; equal to `max_concurrent` if that is given."""
    fixed_fates: bool = False
    """Whether the number of a call and of its attempt decide its fate, whoever sends it and when."""
    max_retries: float = math.inf
    """Requests of a call after the first. Then the call is lost."""
    tokens: Callable[[random.Random], float] | None = None
    estimate_error: float = 0.0
    """Sigma of the lognormal factor between a call's tokens and the client's estimate."""
    overestimate: float = 1.0
    """Factor by which the client's estimates are too high."""


@dataclass
class Outcome:
    """The result of a run."""

    seconds: float
    done: list[int]
    done_late: list[int]
    units: float
    refused: int
    lost: int
    last_done: float
    """Time of the last answer, or of the last loss."""
    attempts: list[int]
    """Requests that each call needed, in the order of the answers."""
    trace: list[tuple[float, int, int, float, float]]
    """Each second: (time, sent, admitted, rate or infinity, window or infinity), of the first process."""

    @property
    def refused_per_thousand(self) -> float:
        return 1000 * self.refused / max(1, sum(self.done))

    @property
    def jain(self) -> float:
        """Jain's fairness index of the processes' answers: 1 if all are equal, 1/n if one has all."""
        squares = sum(share * share for share in self.done_late)
        return sum(self.done_late) ** 2 / (len(self.done_late) * squares) if squares else math.nan


_REPLY, _TIMER, _WAKE, _ARRIVAL, _CHANGE, _START, _TICK = range(7)


class Simulation:
    """One run of a scenario."""

    def __init__(
        self,
        scenario: Scenario,
        policy: Callable[[Provider, int, random.Random], Policy],
        seed: int,
        *,
        trace: bool = False,
    ) -> None:
        # The provider has its own source of randomness, so the jitter of a policy does not change it.
        self._chance = random.Random(f"world {seed}")
        self._fate = Fate(seed)
        self._scenario, self._seed = scenario, seed
        chance = random.Random(f"provider {seed}")
        providers = [scenario.provider(chance) for _ in range(scenario.keys)]
        self._provider = providers[0]
        sources = [random.Random(f"policy {seed} {number}") for number in range(scenario.processes)]
        self._processes = [
            Process(
                [(policy(each, scenario.max_in_flight, source), each) for each in providers], scenario.calls
            )
            for source in sources
        ]
        for process in self._processes:
            for one, _ in process.keys:
                one.at_once = scenario.at_once
        self._heap: list[tuple[float, int, int, Any, Any, Any]] = []
        self._sequence = self._calls = 0
        self._units = 0.0
        self._last_done = 0.0
        self._sent = self._admitted = self._total = 0
        self._trace: list[tuple[float, int, int, float, float]] = []
        for process in self._processes:
            delay = self._chance.uniform(0, 2) if scenario.processes > 1 else 0.0
            self._push(delay, _START, process)
            for time, count in scenario.arrivals:
                self._push(time, _ARRIVAL, process, count)
        for time, factor in scenario.changes:
            self._push(time, _CHANGE, factor)
        if trace:
            self._push(1.0, _TICK)
        self._base_rate = getattr(self._provider.limits[0], "rate", 0.0) if self._provider.limits else 0.0

    def _push(self, time: float, kind: int, a: Any = None, b: Any = None, c: Any = None) -> None:
        self._sequence += 1
        heapq.heappush(self._heap, (time, self._sequence, kind, a, b, c))

    def run(self) -> Outcome:
        heap, end, now = self._heap, self._scenario.duration, 0.0
        while heap and heap[0][0] <= end and self._total < MOST_REQUESTS:
            now, _, kind, a, b, c = heapq.heappop(heap)
            if kind == _REPLY:
                self._reply(now, a, b, c)
            elif kind == _TIMER:
                if a.timer == b:
                    a.timer = math.inf
                    self._pump(a, now)
            elif kind == _WAKE:
                b.woke(now)
                a.again.append(c)
                self._pump(a, now)
            elif kind == _ARRIVAL:
                a.waiting += b
                self._pump(a, now)
            elif kind == _CHANGE:
                self._provider.limits[0].change(now, self._base_rate * a)  # type: ignore[attr-defined]
            elif kind == _START:
                self._pump(a, now)
            else:
                self._tick(now)
        processes = self._processes
        done = [process.done for process in processes]
        return Outcome(
            seconds=end if self._total < MOST_REQUESTS else now,
            done=done,
            done_late=[process.done_late for process in processes],
            units=self._units,
            refused=sum(process.refused for process in processes),
            lost=sum(process.lost for process in processes),
            last_done=self._last_done,
            attempts=[attempts for process in processes for attempts in process.attempts],
            trace=self._trace,
        )

    def _tick(self, now: float) -> None:
        rate, window = self._processes[0].keys[0][0].shown(now)
        self._trace.append((now, self._sent, self._admitted, rate, window))
        self._sent = self._admitted = 0
        self._push(now + 1.0, _TICK)

    def _take(self, process: Process) -> Call | None:
        if process.again:
            return process.again.popleft()
        if process.next_call is None and process.waiting > 0:
            process.waiting -= 1
            process.next_call = self._new_call()
        call, process.next_call = process.next_call, None
        return call

    def _new_call(self) -> Call:
        scenario, chance = self._scenario, self._chance
        self._calls += 1
        if scenario.tokens is None:
            return Call(1.0, 1.0, self._calls)
        tokens = scenario.tokens(chance)
        off = math.exp(chance.gauss(0, scenario.estimate_error))
        return Call(tokens * scenario.overestimate, tokens * off, self._calls)

    def _pump(self, process: Process, now: float) -> None:
        while (call := self._take(process)) is not None:
            first, ready = process.keys[0], math.inf
            for key in process.keys:
                policy = key[0]
                at = policy.ready_at(now, call.charged if policy.omniscient else call.tokens)
                if at < ready:
                    first, ready = key, at
            if ready > now:
                if call.attempts:
                    process.again.appendleft(call)
                else:
                    process.next_call = call
                if ready < math.inf:
                    ready = max(ready, now + TIMER_STEP)
                    if ready != process.timer:
                        process.timer = ready
                        self._push(ready, _TIMER, process, ready)
                return
            self._send(process, first, call, now)

    def _send(self, process: Process, key: tuple[Policy, Provider], call: Call, now: float) -> None:
        (policy, provider), chance = key, self._chance
        ticket = policy.sent(now, call.tokens)
        call.attempts += 1
        self._total += 1
        self._sent += 1
        if self._scenario.fixed_fates:
            chance = self._fate
            chance.seed((self._seed << 40) + (call.number << 8) + call.attempts)
        shedding = provider.shedding
        if shedding and shedding.refuses(now, chance):
            delay = provider.refusal_latency * chance.uniform(0.8, 1.2)
            told = provider.headers(now, chance) if provider.headers and shedding.with_headers else None
            facts = (key, ticket, shedding.retry_after, told, shedding.status)
            self._push(now + delay, _REPLY, process, call, facts)
            return
        refused_for = provider.offer(now, call.charged)
        headroom = provider.headers(now, chance) if provider.headers else None
        if refused_for > 0:
            delay = provider.refusal_latency * chance.uniform(0.8, 1.2)
            told = headroom if provider.headers_on_refusals else None
            facts = (key, ticket, provider.told(refused_for), told, provider.status)
            self._push(now + delay, _REPLY, process, call, facts)
            return
        self._admitted += 1
        spread = provider.spread
        latency = provider.latency * math.exp(chance.gauss(-spread * spread / 2, spread))
        if now >= provider.slower[0]:
            latency *= provider.slower[1]
        if provider.workers:
            latency = provider.workers.delay(now, latency)
        if latency > provider.deadline:
            self._push(now + provider.deadline, _REPLY, process, None, (key, ticket, None, headroom, 0))
        else:
            self._push(now + latency, _REPLY, process, call, (key, ticket, None, headroom, 200))

    def _reply(self, now: float, process: Process, call: Call | None, facts: tuple[Any, ...]) -> None:
        (policy, provider), ticket, told, headroom, status = facts
        if call is None:
            process.lost += 1
            policy.failed(now, ticket)
        elif status == 200:
            for limit in provider.limits:
                limit.release()
            process.done += 1
            process.done_late += now > 60.0
            self._units += call.charged
            self._last_done = now
            process.attempts.append(call.attempts)
            used = call.charged if self._scenario.tokens else None
            policy.succeeded(now, ticket, headroom, used)
        else:
            process.refused += 1
            record = policy.refused if status == 429 else policy.overloaded
            delay = record(now, ticket, told, headroom, call.attempts)
            if call.attempts > self._scenario.max_retries:
                process.lost += 1
                self._last_done = now
            elif delay > 0:
                self._push(now + delay, _WAKE, process, policy, call)
            else:
                process.again.append(call)
        self._pump(process, now)
