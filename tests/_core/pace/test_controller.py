"""The controller: its invariants under anything that can happen, and the limits of small worlds."""

import heapq
import json
import math
import random
from collections import deque

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from llm_provider._core.pace.controller import _LONG_WAIT, AdaptiveController
from llm_provider._core.pace.headers import Allowance, Headroom
from llm_provider._core.pace.state import Ticket
from rate_limit_world import MANY, bucket, run

LARGEST = 1e5
"""Tokens of the largest request."""


def end_otherwise(controller: AdaptiveController, how: str, now: float, ticket: Ticket) -> None:
    """End a request that failed, was cancelled or was withdrawn."""
    if how == "failed":
        controller.record_failure(now, ticket)
    elif how == "cancelled":
        controller.record_cancellation(ticket)
    else:
        controller.record_withdrawal(ticket)


HEADROOMS = st.none() | st.builds(
    lambda rate, remaining: Headroom(Allowance(rate, remaining), Allowance(rate * 500, remaining * 500)),
    st.floats(0.01, 1e4),
    st.floats(0, 1e4),
)
RETRY_AFTERS = st.none() | st.floats(0, 1e6)
INDICES = st.integers(0, 10**6)
MOST_IN_FLIGHT = 64


class ControllerMachine(RuleBasedStateMachine):
    """Any order of anything, shrunk to the shortest story that breaks an invariant. Every step is checked."""

    def __init__(self) -> None:
        super().__init__()
        self.controller = AdaptiveController(random_source=random.Random(0))
        self.now = 0.0
        self.out: list[Ticket] = []
        self.newest = self.episode = 0

    def send(self, tokens: float) -> None:
        controller = self.controller
        if controller.ready_at(self.now, tokens, MOST_IN_FLIGHT, 0) > self.now:
            return
        assert self.now >= controller.gate, "nothing is sent before the gate opens"
        assert controller.in_flight < MOST_IN_FLIGHT
        window = controller.window
        self.out.append(controller.record_request(self.now, tokens, 0))
        self.newest = self.out[-1].number
        # Above the window there is at most what probes a cap, and that is no more than half of it.
        assert controller.in_flight <= 1.5 * window + 1
        self.is_sane()

    def take(self, index: int) -> Ticket:
        return self.out.pop(index % len(self.out))

    @rule(seconds=st.floats(0, 30))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule(count=st.integers(1, 20), tokens=st.floats(1, LARGEST))
    def send_some(self, count: int, tokens: float) -> None:
        for _ in range(count):
            self.send(tokens)

    @rule()
    def the_gate_opens(self) -> None:
        """Wait for the gate: at the instant at which it opens, one request goes as a probe, and no second.

        While no limit is known, which is after 503 only, the smaller window bounds what goes. If the first
        refusals may have been those of a cap, as many go as the guessed cap has room for.
        """
        if self.now < self.controller.gate and not self.controller.open:
            self.now = self.controller.gate
            before, window = len(self.out), self.controller._window
            most = max(1, window.unpaced - before) if window.guessed else 1
            for _ in range(3):
                self.send(LARGEST)
            assert len(self.out) <= before + most

    @precondition(lambda self: self.out)
    @rule(index=INDICES, headroom=HEADROOMS, tokens=st.none() | st.floats(0, LARGEST))
    def succeed(self, index: int, headroom: Headroom | None, tokens: float | None) -> None:
        before = self.controller.rate, self.controller.gate
        self.controller.record_success(self.now, self.take(index), headroom, tokens)
        assert (self.controller.rate, self.controller.gate) == before

    @precondition(lambda self: self.out)
    @rule(index=INDICES, retry_after=RETRY_AFTERS, headroom=HEADROOMS)
    def refuse(self, index: int, retry_after: float | None, headroom: Headroom | None) -> None:
        ticket, controller = self.take(index), self.controller
        rate, gate, window = controller.rate, controller.gate, controller.window
        late = ticket.number <= self.episode and not controller.open
        alone = controller.record_refusal(self.now, ticket, retry_after, headroom)
        if late and ticket.in_flight < 0.9 * window:
            assert controller.rate == rate, "one cut per episode"
        if alone:
            # One with a long Retry-After may be of the limit, and yet hold no other call.
            assert controller.rate >= rate or retry_after >= _LONG_WAIT, "a random refusal cuts nothing"
        elif retry_after is not None:
            assert controller.gate >= max(gate, self.now + min(retry_after, 60.0))
        assert controller.gate >= gate
        if controller.rate != rate:
            self.episode = self.newest

    @precondition(lambda self: self.out)
    @rule(index=INDICES, retry_after=RETRY_AFTERS)
    def overload(self, index: int, retry_after: float | None) -> None:
        rate, gate = self.controller.rate, self.controller.gate
        alone = self.controller.record_overload(self.now, self.take(index), retry_after)
        assert self.controller.rate == rate, "the server's trouble says nothing about the rate limit"
        if alone:
            assert self.controller.gate == gate
        else:
            assert self.controller.gate >= self.now

    @precondition(lambda self: self.out)
    @rule(index=INDICES, how=st.sampled_from(["failed", "cancelled", "withdrawn"]))
    def end(self, index: int, how: str) -> None:
        before = self.controller.rate, self.controller.gate
        end_otherwise(self.controller, how, self.now, self.take(index))
        assert (self.controller.rate, self.controller.gate) == before

    @invariant()
    def is_sane(self) -> None:
        controller = self.controller
        assert controller.in_flight == len(self.out), "every place is given back"
        assert controller.window >= 1
        assert 0 < controller.rate < math.inf
        assert not math.isnan(controller.gate)
        if not self.out:
            self.check_no_starvation()

    def check_no_starvation(self) -> None:
        """With nothing in flight, time alone opens the way, and soon."""
        when = self.now
        for _ in range(4):
            ready = self.controller.ready_at(when, 1.0, MOST_IN_FLIGHT, 0)
            if ready <= when:
                break
            when = ready
        assert ready <= when < math.inf
        assert when <= max(self.now, self.controller.gate) + 1e5


TestController = ControllerMachine.TestCase
TestController.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


@pytest.mark.parametrize("rate", [2.0, 10.0, 100.0])
@pytest.mark.parametrize("retry_after", [True, False])
def test_a_rate_limit_is_found_and_kept(rate: float, retry_after: bool) -> None:
    (controller,), (served,), refused = run(bucket(rate, rate), 120, retry_after=retry_after)
    assert controller.rate == pytest.approx(rate, rel=0.1)
    assert served > 0.95 * rate * 119
    assert refused < 12 + 120 / 10


@pytest.mark.parametrize("later", [20, 14, 60])
def test_a_concurrency_cap_is_found_kept_and_found_again_where_it_has_changed(later: int) -> None:
    def cap(now: float) -> int:
        return 20 if now < 120 else later

    (controller,), (served,), refused = run(lambda now, serving: 1e-9 * (serving >= cap(now)), 240)
    assert controller.window == later
    assert served > 0.85 * (20 + later) * 119
    assert refused < 70


def test_a_cap_that_gives_way_to_a_rate_is_forgotten() -> None:
    rate = bucket(10.0, 10.0)

    def limit(now: float, serving: int) -> float:
        return 1e-9 * (serving >= 20) if now < 60 else rate(now, serving)

    _, (served,), refused = run(limit, 300)
    assert served > 0.95 * (20 * 59 + 10 * 240)
    assert refused < 45


@pytest.mark.parametrize(("cap", "latency"), [(5, 0.5), (12, 0.3), (40, 1.0)])
def test_a_cap_without_hints_is_used_from_its_first_refusals_on(cap: int, latency: float) -> None:
    _, (served,), refused = run(
        lambda now, serving: float(serving >= cap), 20, latency=latency, retry_after=False
    )
    assert served > 0.92 * cap / latency * (20 - latency)
    assert refused < 20


def test_headers_are_compared_with_what_requests_really_use() -> None:
    """Estimates that are ten times too high would hold back nine requests of ten that headers allow."""

    def served(*, use_is_known: bool) -> int:
        controller, now, level, at, done = AdaptiveController(), 0.0, 1000.0, 0.0, 0
        pending: list[tuple[float, int, Ticket]] = []
        while now < 60:
            while controller.ready_at(now, 1000.0, MANY, 0) <= now:
                ticket = controller.record_request(now, 1000.0, 0)
                level, at = min(1000.0, level + (now - at) * 1000) - 100, now
                if level < 0:
                    level += 100
                    controller.record_refusal(now, ticket, 0.1)
                else:
                    heapq.heappush(pending, (now + 1.0, ticket.number, ticket))
            now = min(
                pending[0][0] if pending else math.inf,
                max(controller.ready_at(now, 1000.0, MANY, 0), now + 0.001),
            )
            while pending and pending[0][0] <= now:
                left = Headroom(tokens=Allowance(1000.0, min(1000.0, level + (now - at) * 1000)))
                controller.record_success(
                    now, heapq.heappop(pending)[2], left, 100.0 if use_is_known else None
                )
                done += 1
        return done

    assert served(use_is_known=True) > 0.9 * 10 * 60
    assert served(use_is_known=False) < 0.3 * 10 * 60


def test_processes_that_share_a_limit_get_equal_shares() -> None:
    _, served, refused = run(bucket(40.0, 40.0), 300, processes=4)
    assert sum(served) > 0.97 * 40 * 299
    assert min(served) > 0.5 * max(served)
    assert refused < 0.05 * sum(served)


def test_without_a_limit_nothing_is_held_back_for_long() -> None:
    (controller,), (served,), refused = run(lambda now, serving: 0.0, 5.5, latency=0.5)
    assert refused == 0
    assert served > 2000
    assert controller.window > 1000


def test_a_queue_behind_the_server_is_kept_short() -> None:
    """64 workers need a second for each request. Latency grows with the load, and nothing is refused."""
    controller, free, now, done = AdaptiveController(), [0.0] * 64, 0.0, 0
    pending: list[tuple[float, int, Ticket]] = []
    while now < 120:
        while controller.ready_at(now, 1.0, MANY, 0) <= now:
            ticket = controller.record_request(now, 1.0, 0)
            begins = max(now, heapq.heappop(free))
            heapq.heappush(free, begins + 1.0)
            heapq.heappush(pending, (begins + 1.0, ticket.number, ticket))
        later = min(
            pending[0][0] if pending else math.inf, max(controller.ready_at(now, 1.0, MANY, 0), now + 0.001)
        )
        now = later
        while pending and pending[0][0] <= now:
            controller.record_success(now, heapq.heappop(pending)[2])
            done += 1
    assert done > 0.97 * 64 * 118
    assert controller.window < 64 * 3.5


def test_an_overloaded_server_gets_fewer_at_once_and_recovers() -> None:
    controller, now = AdaptiveController(), 0.0
    tickets = []
    while len(tickets) < 100:
        now = max(now, controller.ready_at(now, 1.0, MANY, 0))
        tickets.append(controller.record_request(now, 1.0, 0))
    alone = [controller.record_overload(now, tickets.pop(), retry_after=1.0) for _ in range(4)]
    assert all(alone), "a few may be random"
    assert controller.window == 256
    while controller.record_overload(now, tickets.pop(), retry_after=1.0):
        assert len(tickets) > 85
    reduced = controller.window
    assert 0.7 * 85 < reduced < 70
    controller.record_overload(now, tickets.pop(), retry_after=1.0)
    assert controller.window == reduced, "once per episode"
    for ticket in tickets:
        controller.record_success(now + 1, ticket)
    before, now = controller.window, now + 2
    in_flight: deque[Ticket] = deque()
    for _ in range(1500):
        now += 0.01
        while isinstance(ticket := controller.admit(now, 1.0, MANY, 100), Ticket):
            in_flight.append(ticket)
        while in_flight and in_flight[0].at <= now - 1:
            controller.record_success(now, in_flight.popleft())
    assert controller.window > before, "it grows while it is used"
    for ticket in in_flight:
        controller.record_success(now, ticket)
    now = max(now, controller.gate)
    used = controller.window
    for _ in range(400):
        now = max(now, controller.ready_at(now, 1.0, MANY, 0))
        controller.record_success(now + 1, controller.record_request(now, 1.0, 0))
    assert controller.window == used, "an unused window proves nothing"


OUTCOMES = st.sampled_from(
    ["succeeded", "succeeded", "refused", "overloaded", "failed", "cancelled", "withdrawn"]
)
Operation = tuple[float, float, str, float | None, Headroom | None, int]

OPERATIONS = st.lists(
    st.tuples(
        st.floats(0, 5), st.floats(1, LARGEST), OUTCOMES, st.none() | st.floats(0, 20), HEADROOMS, INDICES
    ),
    max_size=40,
)
"""Seconds that pass, tokens of a burst of requests, the outcome of an earlier request, its Retry-After, its
headers, and which request it is."""


def perform(
    controller: AdaptiveController, operations: list[Operation], out: list[Ticket], now: float
) -> float:
    """Perform operations on a controller. Returns the time after the last one."""
    for seconds, tokens, outcome, retry_after, headroom, index in operations:
        now += seconds
        for _ in range(5):
            granted = controller.admit(now, tokens, 50, 16)
            if isinstance(granted, Ticket):
                out.append(granted)
        if not out:
            continue
        ticket = out.pop(index % len(out))
        if outcome == "succeeded":
            controller.record_success(now, ticket, headroom, tokens / 2)
        elif outcome == "refused":
            controller.record_refusal(now, ticket, retry_after, headroom)
        elif outcome == "overloaded":
            controller.record_overload(now, ticket, retry_after)
        else:
            end_otherwise(controller, outcome, now, ticket)
    return now


@settings(max_examples=100, deadline=None)
@given(before=OPERATIONS, after=OPERATIONS, seed=INDICES)
def test_a_restored_controller_is_alike(before: list[Operation], after: list[Operation], seed: int) -> None:
    controller, out = AdaptiveController(random_source=random.Random(seed)), list[Ticket]()
    now = perform(controller, before, out, 0.0)
    stored = json.dumps(controller.to_state())
    restored = AdaptiveController.from_state(json.loads(stored))
    assert json.dumps(restored.to_state()) == stored
    tickets = [Ticket.from_state(json.loads(json.dumps(ticket.to_state()))) for ticket in out]
    assert [ticket.to_state() for ticket in tickets] == [ticket.to_state() for ticket in out]
    # The jitter is not part of the state.
    controller._random, restored._random = random.Random(seed), random.Random(seed)
    assert perform(controller, after, out, now) == perform(restored, after, tickets, now)
    assert json.dumps(restored.to_state()) == json.dumps(controller.to_state())
    assert [ticket.to_state() for ticket in tickets] == [ticket.to_state() for ticket in out]
