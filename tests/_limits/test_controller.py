"""The controller: its invariants under anything that can happen, and the limits of small worlds."""

from __future__ import annotations

import heapq
import math
import random
from collections import deque
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from llm_provider._limits.controller import AdaptiveController
from llm_provider._limits.headers import Allowance, Headroom
from llm_provider._limits.rate_estimator import Ticket

LARGEST = 1e5
"""Tokens of the largest request."""


class Checked:
    """A controller whose every step is checked."""

    def __init__(self, seed: int, max_in_flight: int, remembered: float | None = None) -> None:
        self.control = AdaptiveController(random_source=random.Random(seed), remembered=remembered)
        self.max_in_flight = max_in_flight
        self.now = 0.0
        self.out: list[Ticket] = []
        self.newest = self.episode = 0

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        self.check()

    def ready(self, cost: float) -> bool:
        return self.control.ready_at(self.now, cost, self.max_in_flight) <= self.now

    def send(self, cost: float) -> None:
        if not self.ready(cost):
            return
        control = self.control
        assert self.now >= control.gate, "nothing is sent before the gate opens"
        assert control.in_flight < self.max_in_flight
        window = control.window
        self.out.append(control.sent(self.now, cost))
        self.newest = self.out[-1].number
        # Above the window there is at most what probes a cap, and that is no more than half of it.
        assert control.in_flight <= 1.5 * window + 1
        self.check()

    def reopen(self) -> None:
        """Wait for the gate: at the instant at which it opens, one request goes as a probe, and no second.

        While no limit is known, which is after 503 only, the smaller window bounds what goes.
        """
        if self.now < self.control.gate and not self.control.open:
            self.pass_time(self.control.gate - self.now)
            self.now = max(self.now, self.control.gate)
            before = len(self.out)
            for _ in range(3):
                self.send(LARGEST)
            assert len(self.out) <= before + 1

    def take(self, index: int) -> Ticket:
        return self.out.pop(index % len(self.out))

    def succeed(self, index: int, headroom: Headroom | None, cost: float | None = None) -> None:
        rate, gate, was_open = self.control.rate, self.control.gate, self.control.open
        self.control.succeeded(self.now, self.take(index), headroom, cost)
        assert self.control.gate == gate
        # Headers that prove wrong end the first phase, as a refusal does.
        assert self.control.rate == rate or self.control.open < was_open
        if self.control.rate != rate:
            self.episode = self.newest
        self.check()

    def refuse(self, index: int, retry_after: float | None, headroom: Headroom | None) -> None:
        ticket, control = self.take(index), self.control
        rate, gate, window = control.rate, control.gate, control.window
        late = ticket.number <= self.episode and not control.open
        control.refused(self.now, ticket, retry_after, headroom)
        if late and ticket.in_flight < 0.9 * window:
            assert control.rate == rate, "one cut per episode"
        if retry_after is not None:
            assert control.gate >= max(gate, self.now + min(retry_after, 60.0))
        assert control.gate >= gate
        if control.rate != rate:
            self.episode = self.newest
        self.check()

    def overload(self, index: int, retry_after: float | None) -> None:
        rate = self.control.rate
        self.control.overloaded(self.now, self.take(index), retry_after)
        assert self.control.rate == rate, "the server's trouble says nothing about the rate limit"
        assert self.control.gate >= self.now
        self.check()

    def end(self, index: int, how: str) -> None:
        before = self.control.rate, self.control.gate
        ticket = self.take(index)
        if how == "failed":
            self.control.failed(self.now, ticket)
        elif how == "cancelled":
            self.control.cancelled(ticket)
        else:
            self.control.withdrawn(ticket)
        assert (self.control.rate, self.control.gate) == before
        self.check()

    def check(self) -> None:
        control = self.control
        assert control.in_flight == len(self.out), "every place is given back"
        assert control.window >= 1
        assert 0 < control.rate < math.inf
        assert not math.isnan(control.gate)
        if not self.out:
            self.check_no_starvation()

    def check_no_starvation(self) -> None:
        """With nothing under way, time alone opens the way, and soon."""
        when = self.now
        for _ in range(4):
            ready = self.control.ready_at(when, 1.0, self.max_in_flight)
            if ready <= when:
                break
            when = ready
        assert ready <= when < math.inf
        assert when <= max(self.now, self.control.gate) + 1e5


HEADROOMS = st.none() | st.builds(
    lambda rate, remaining: Headroom(Allowance(rate, remaining), Allowance(rate * 500, remaining * 500)),
    st.floats(0.01, 1e4),
    st.floats(0, 1e4),
)
RETRY_AFTERS = st.none() | st.floats(0, 1e6)
INDICES = st.integers(0, 10**6)


class ControlMachine(RuleBasedStateMachine):
    """Any order of anything, shrunk to the shortest story that breaks an invariant."""

    def __init__(self) -> None:
        super().__init__()
        self.world = Checked(0, 64)

    @rule(seconds=st.floats(0, 30))
    def time_passes(self, seconds: float) -> None:
        self.world.pass_time(seconds)

    @rule(count=st.integers(1, 20), cost=st.floats(1, LARGEST))
    def send(self, count: int, cost: float) -> None:
        for _ in range(count):
            self.world.send(cost)

    @rule()
    def the_gate_opens(self) -> None:
        self.world.reopen()

    @precondition(lambda self: self.world.out)
    @rule(index=INDICES, headroom=HEADROOMS, cost=st.none() | st.floats(0, LARGEST))
    def succeed(self, index: int, headroom: Headroom | None, cost: float | None) -> None:
        self.world.succeed(index, headroom, cost)

    @precondition(lambda self: self.world.out)
    @rule(index=INDICES, retry_after=RETRY_AFTERS, headroom=HEADROOMS)
    def refuse(self, index: int, retry_after: float | None, headroom: Headroom | None) -> None:
        self.world.refuse(index, retry_after, headroom)

    @precondition(lambda self: self.world.out)
    @rule(index=INDICES, retry_after=RETRY_AFTERS)
    def overload(self, index: int, retry_after: float | None) -> None:
        self.world.overload(index, retry_after)

    @precondition(lambda self: self.world.out)
    @rule(index=INDICES, how=st.sampled_from(["failed", "cancelled", "withdrawn"]))
    def end(self, index: int, how: str) -> None:
        self.world.end(index, how)

    @invariant()
    def is_sane(self) -> None:
        self.world.check()


TestControl = ControlMachine.TestCase
TestControl.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


@settings(max_examples=50, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    refusing=st.floats(0, 0.6),
    pace=st.floats(0.001, 0.5),
    told=st.booleans(),
    max_in_flight=st.integers(1, 300),
    remembered=st.none() | st.floats(0.01, 1e4),
)
def test_the_invariants_hold_for_a_hundred_thousand_steps(
    seed: int, refusing: float, pace: float, told: bool, max_in_flight: int, remembered: float | None
) -> None:
    chance, world = random.Random(seed), Checked(seed, max_in_flight, remembered)
    for _ in range(2000):
        draw = chance.random()
        if draw < 0.5 or not world.out:
            world.pass_time(chance.expovariate(1 / pace))
            world.send(chance.choice([1.0, 50.0, 4000.0]))
            continue
        index = chance.randrange(len(world.out))
        headroom = Headroom(Allowance(chance.random() * 20, chance.random() * 99)) if told else None
        retry_after = chance.choice([None, 0.0, 0.1, 3.0])
        if chance.random() < refusing:
            world.refuse(index, retry_after, headroom)
            if chance.random() < 0.3:
                world.reopen()
        elif chance.random() < 0.9:
            world.succeed(index, headroom, chance.choice([None, 10.0]))
        elif chance.random() < 0.5:
            world.overload(index, retry_after)
        else:
            world.end(index, chance.choice(["failed", "cancelled", "withdrawn"]))


Limit = Callable[[float, int], float]
"""Seconds to wait until a request is admitted, of the time and of how many are being served; 0 admits it."""


def bucket(rate: float, capacity: float) -> Limit:
    level, at = capacity, 0.0

    def admit(now: float, serving: int) -> float:
        nonlocal level, at
        level, at = min(capacity, level + (now - at) * rate), now
        if level < 1 - 1e-9:
            return (1 - level) / rate
        level -= 1
        return 0.0

    return admit


def run(
    limit: Limit,
    seconds: float,
    *,
    processes: int = 1,
    latency: float = 1.0,
    headers: Callable[[float], Headroom] | None = None,
    retry_after: bool = True,
    remembered: float | None = None,
) -> tuple[list[AdaptiveController], list[int], int]:
    """An endless backlog against a limit: the controllers, requests served by each, and refusals."""
    chance = random.Random(1)
    controls = [
        AdaptiveController(random_source=random.Random(number), remembered=remembered)
        for number in range(processes)
    ]
    served, refused, serving = [0] * processes, 0, 0
    events: list[tuple[float, int, int, Ticket | None, float, Headroom | None]] = []
    for number in range(processes):
        heapq.heappush(events, (chance.random(), number, number, None, 0.0, None))
    sequence, timers = processes, [0.0] * processes
    while events and events[0][0] < seconds:
        now, _, number, ticket, wait, told = heapq.heappop(events)
        control = controls[number]
        if ticket is not None and wait:
            refused += 1
            control.refused(now, ticket, wait if retry_after else None, told)
        elif ticket is not None:
            serving -= 1
            served[number] += 1
            control.succeeded(now, ticket, told)
        while (ready := control.ready_at(now)) <= now:
            sent = control.sent(now)
            wait = limit(now, serving)
            serving += not wait
            took = 0.05 if wait else latency * chance.uniform(0.7, 1.3)
            sequence += 1
            told = headers(now) if headers else None
            heapq.heappush(events, (now + took, sequence, number, sent, wait, told))
        ready = max(ready, now + 0.001)
        if ready < math.inf and not now < timers[number] <= ready:
            sequence, timers[number] = sequence + 1, ready
            heapq.heappush(events, (ready, sequence, number, None, 0.0, None))
    return controls, served, refused


@pytest.mark.parametrize("rate", [2.0, 10.0, 100.0])
@pytest.mark.parametrize("retry_after", [True, False])
def test_a_rate_limit_is_found_and_kept(rate: float, retry_after: bool) -> None:
    (control,), (served,), refused = run(bucket(rate, rate), 120, retry_after=retry_after)
    assert control.rate == pytest.approx(rate, rel=0.1)
    assert served > 0.95 * rate * 119
    assert refused < 12 + 120 / 10


def test_a_concurrency_cap_is_found_and_kept() -> None:
    (control,), (served,), refused = run(lambda now, serving: 0.0 if serving < 20 else 1e-9, 120)
    assert control.window == 20
    assert served > 0.93 * 20 * 119
    assert refused < 50


def test_a_refusal_with_nothing_else_in_flight_proves_no_cap() -> None:
    control, now = AdaptiveController(), 0.0
    for _ in range(40):
        now = max(now + 0.5, control.ready_at(now))
        control.succeeded(now + 0.3, control.sent(now))
    for _ in range(10):
        now = max(now + 0.5, control.ready_at(now), control.gate)
        control.cancelled(control.sent(now))
        now = max(now + 0.5, control.ready_at(now))
        control.refused(now + 0.05, control.sent(now))
    assert control.window == math.inf


def test_truthful_headers_foretell_refusals() -> None:
    limit, level, at = bucket(10.0, 10.0), 10.0, 0.0

    def admit(now: float, serving: int) -> float:
        nonlocal level, at
        level, at = min(10.0, level + (now - at) * 10), now
        wait = limit(now, serving)
        level -= not wait
        return wait

    _, (served,), refused = run(admit, 60, headers=lambda now: Headroom(Allowance(10.0, math.floor(level))))
    assert served > 0.97 * 10 * 59
    # Those of the first instants, before any answer.
    assert refused <= 6


def test_headers_are_compared_with_what_requests_really_use() -> None:
    """Estimates that are ten times too high would hold back nine requests of ten that headers allow."""

    def served(*, told: bool) -> int:
        control, now, level, at, done = AdaptiveController(), 0.0, 1000.0, 0.0, 0
        pending: list[tuple[float, int, Ticket]] = []
        while now < 60:
            while control.ready_at(now, 1000.0) <= now:
                ticket = control.sent(now, 1000.0)
                level, at = min(1000.0, level + (now - at) * 1000) - 100, now
                if level < 0:
                    level += 100
                    control.refused(now, ticket, 0.1)
                else:
                    heapq.heappush(pending, (now + 1.0, ticket.number, ticket))
            now = min(pending[0][0] if pending else math.inf, max(control.ready_at(now, 1000.0), now + 0.001))
            while pending and pending[0][0] <= now:
                left = Headroom(tokens=Allowance(1000.0, min(1000.0, level + (now - at) * 1000)))
                control.succeeded(now, heapq.heappop(pending)[2], left, 100.0 if told else None)
                done += 1
        return done

    assert served(told=True) > 0.9 * 10 * 60
    assert served(told=False) < 0.3 * 10 * 60


def test_headers_that_are_given_up_leave_no_burst_behind() -> None:
    """For a while they told the limit of ten a second, which is what is known when they prove wrong."""
    control, now = AdaptiveController(), 0.0
    for number in range(600):
        now = max(now + 0.1, control.ready_at(now))
        control.succeeded(now + 0.05, control.sent(now), Headroom(Allowance(10.0, 5.0 - number % 2)))
    for _ in range(20):
        now = max(now + 0.1, control.ready_at(now))
        control.refused(now + 0.05, control.sent(now), 0.1, Headroom(Allowance(10.0, 5.0)))
    now += 10
    before = control.in_flight
    while control.ready_at(now) <= now:
        control.sent(now)
    assert control.in_flight <= before + 2


def test_a_limit_that_is_remembered_is_not_looked_for_again() -> None:
    (control,), _, found = run(bucket(10.0, 10.0), 60)
    assert control.learnt == pytest.approx(10.0, rel=0.1)
    (again,), (served,), refused = run(bucket(10.0, 10.0), 60, remembered=control.learnt)
    assert refused < found
    assert served > 0.95 * 10 * 59
    assert again.learnt == pytest.approx(10.0, rel=0.1)


def test_a_limit_that_was_never_met_is_not_known() -> None:
    control = AdaptiveController()
    control.succeeded(1.0, control.sent(0.0))
    assert control.learnt is None


def test_processes_that_share_a_limit_get_equal_shares() -> None:
    _, served, refused = run(bucket(40.0, 40.0), 300, processes=4)
    assert sum(served) > 0.97 * 40 * 299
    assert min(served) > 0.6 * max(served)
    assert refused < 0.05 * sum(served)


def test_without_a_limit_nothing_is_held_back_for_long() -> None:
    (control,), (served,), refused = run(lambda now, serving: 0.0, 8, latency=0.5)
    assert refused == 0
    assert served > 2000
    assert control.window > 1000


def test_a_queue_behind_the_server_is_kept_short() -> None:
    """64 workers at a second each: latency grows with what is sent, and nothing is ever refused."""
    control, free, now, done = AdaptiveController(), [0.0] * 64, 0.0, 0
    pending: list[tuple[float, int, Ticket]] = []
    while now < 120:
        while control.ready_at(now) <= now:
            ticket = control.sent(now)
            begins = max(now, heapq.heappop(free))
            heapq.heappush(free, begins + 1.0)
            heapq.heappush(pending, (begins + 1.0, ticket.number, ticket))
        later = min(pending[0][0] if pending else math.inf, max(control.ready_at(now), now + 0.001))
        now = later
        while pending and pending[0][0] <= now:
            control.succeeded(now, heapq.heappop(pending)[2])
            done += 1
    assert done > 0.97 * 64 * 118
    assert control.window < 64 * 3.5


def test_an_overloaded_server_gets_fewer_at_once_and_recovers() -> None:
    control, now = AdaptiveController(), 0.0
    tickets = []
    while len(tickets) < 100:
        now = max(now, control.ready_at(now))
        tickets.append(control.sent(now))
    control.overloaded(now, tickets.pop(), retry_after=1.0)
    control.overloaded(now, tickets.pop(), retry_after=1.0)
    assert control.window == 70, "once per episode"
    for ticket in tickets:
        control.succeeded(now + 1, ticket)
    before, now = control.window, now + 2
    under_way: deque[Ticket] = deque()
    for _ in range(1500):
        now += 0.01
        while isinstance(ticket := control.admit(now, at_once=100), Ticket):
            under_way.append(ticket)
        while under_way and under_way[0].at <= now - 1:
            control.succeeded(now, under_way.popleft())
    assert control.window > before, "it grows while it is used"
    for ticket in under_way:
        control.succeeded(now, ticket)
    now = max(now, control.gate)
    used = control.window
    for _ in range(400):
        now = max(now, control.ready_at(now))
        control.succeeded(now + 1, control.sent(now))
    assert control.window == used, "what is not used proves nothing"


def test_a_failed_reopening_sends_one_probe_at_a_time() -> None:
    control, now = AdaptiveController(random_source=random.Random(0)), 0.0
    control.refused(0.05, control.sent(0.0), retry_after=0.1)
    for _ in range(5):
        now = control.ready_at(control.gate)
        probe = control.sent(now)
        assert control.ready_at(now + 0.01) > now + 0.01
        control.refused(now + 0.02, probe, retry_after=0.1)
    waited = control.gate - now
    assert waited > 0.1, "it backs off, whatever Retry-After says"


def test_an_early_timer_comes_back_once() -> None:
    control = AdaptiveController()
    control.refused(0.05, control.sent(0.0), retry_after=1.0)
    opens = control.ready_at(0.5)
    assert control.ready_at(opens - 1e-9) <= opens
    assert control.ready_at(opens) == opens


def test_what_was_withdrawn_can_be_sent_again_at_once() -> None:
    control = AdaptiveController()
    while control.ready_at(0.0) == 0.0:
        ticket = control.sent(0.0)
    before = control.in_flight
    control.withdrawn(ticket)
    assert control.ready_at(0.0) == 0.0
    assert control.in_flight == before - 1


def test_controllers_share_nothing() -> None:
    def story(control: AdaptiveController, others: list[AdaptiveController]) -> tuple[float, float, float]:
        now = 0.0
        for number in range(300):
            now = max(now, control.ready_at(now))
            ticket = control.sent(now)
            for other in others:
                other.refused(now, other.sent(now), retry_after=9.0)
            if number % 40 == 20:
                control.refused(now + 0.05, ticket, retry_after=0.2)
            else:
                control.succeeded(now + 0.05, ticket)
        return control.rate, control.window, control.gate

    alone = story(AdaptiveController(), [])
    assert story(AdaptiveController(), [AdaptiveController() for _ in range(3)]) == alone
