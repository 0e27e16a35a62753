"""The baseline's rule, under anything that can happen."""

import math

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from llm_provider._limits.aimd import AIMD
from llm_provider._limits.rate_estimator import Ticket

MAX_IN_FLIGHT = 16


class AIMDMachine(RuleBasedStateMachine):
    """Sends, successes, failures and refusals in any order, at any time."""

    def __init__(self) -> None:
        super().__init__()
        self.controller = AIMD()
        self.now = 0.0
        self.out: list[Ticket] = []
        self.last_cut = -math.inf

    @rule(seconds=st.floats(0.001, 5))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @precondition(lambda self: self.controller.ready_at(self.now, 1.0, MAX_IN_FLIGHT) <= self.now)
    @rule()
    def send(self) -> None:
        assert self.now >= self.controller.gate
        self.out.append(self.controller.record_request(self.now))

    @precondition(lambda self: self.out)
    @rule(data=st.data(), delay=st.none() | st.floats(0, 10))
    def record_refusal(self, data: st.DataObject, delay: float | None) -> None:
        ticket = self.out.pop(data.draw(st.integers(0, len(self.out) - 1)))
        size, gate = self.controller.window, self.controller.gate
        self.controller.record_refusal(self.now, ticket, delay)
        if ticket.at > self.last_cut:
            assert self.controller.window <= max(1.0, size * 0.5)
            self.last_cut = self.now
        else:
            assert self.controller.window == size, "one cut per episode"
        assert self.controller.gate >= max(gate, self.now + (delay or 0))

    @precondition(lambda self: self.out)
    @rule(data=st.data())
    def served(self, data: st.DataObject) -> None:
        size = self.controller.window
        self.controller.record_success(self.now, self.out.pop(data.draw(st.integers(0, len(self.out) - 1))))
        assert size <= self.controller.window <= size + 1

    @precondition(lambda self: self.out)
    @rule(how=st.sampled_from(["record_failure", "record_cancellation", "record_withdrawal"]))
    def ended_otherwise(self, how: str) -> None:
        size, ticket = self.controller.window, self.out.pop()
        if how == "record_failure":
            self.controller.record_failure(self.now, ticket)
        else:
            getattr(self.controller, how)(ticket)
        assert self.controller.window == size

    @invariant()
    def is_sane(self) -> None:
        assert self.controller.window >= 1
        assert 0 <= self.controller.in_flight == len(self.out) <= MAX_IN_FLIGHT
        # It cannot outgrow its used part.
        assert self.controller.window == math.inf or self.controller.window <= MAX_IN_FLIGHT / 0.8 + 1


TestAIMD = AIMDMachine.TestCase
TestAIMD.settings = settings(max_examples=60, stateful_step_count=60, deadline=None)
