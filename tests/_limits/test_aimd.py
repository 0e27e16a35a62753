"""The baseline's rule, under anything that can happen."""

from __future__ import annotations

import math

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from llm_provider._limits.aimd import AIMD
from llm_provider._limits.rate_estimator import Ticket

CEILING = 16


class AIMDMachine(RuleBasedStateMachine):
    """Sends, successes, failures and refusals in any order, at any time."""

    def __init__(self) -> None:
        super().__init__()
        self.control = AIMD()
        self.now = 0.0
        self.out: list[Ticket] = []
        self.last_cut = -math.inf

    @rule(seconds=st.floats(0.001, 5))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @precondition(lambda self: self.control.ready_at(self.now, 1.0, CEILING) <= self.now)
    @rule()
    def send(self) -> None:
        assert self.now >= self.control.gate
        self.out.append(self.control.sent(self.now))

    @precondition(lambda self: self.out)
    @rule(data=st.data(), delay=st.none() | st.floats(0, 10))
    def refused(self, data: st.DataObject, delay: float | None) -> None:
        ticket = self.out.pop(data.draw(st.integers(0, len(self.out) - 1)))
        size, gate = self.control.window, self.control.gate
        self.control.refused(self.now, ticket, delay)
        if ticket.at > self.last_cut:
            assert self.control.window <= max(1.0, size * 0.5)
            self.last_cut = self.now
        else:
            assert self.control.window == size, "one cut per episode"
        assert self.control.gate >= max(gate, self.now + (delay or 0))

    @precondition(lambda self: self.out)
    @rule(data=st.data())
    def served(self, data: st.DataObject) -> None:
        size = self.control.window
        self.control.succeeded(self.now, self.out.pop(data.draw(st.integers(0, len(self.out) - 1))))
        assert size <= self.control.window <= size + 1

    @precondition(lambda self: self.out)
    @rule(how=st.sampled_from(["failed", "cancelled", "withdrawn"]))
    def ended_otherwise(self, how: str) -> None:
        size, ticket = self.control.window, self.out.pop()
        if how == "failed":
            self.control.failed(self.now, ticket)
        else:
            getattr(self.control, how)(ticket)
        assert self.control.window == size

    @invariant()
    def is_sane(self) -> None:
        assert self.control.window >= 1
        assert 0 <= self.control.in_flight == len(self.out) <= CEILING
        # It cannot outgrow what is used of it.
        assert self.control.window == math.inf or self.control.window <= CEILING / 0.8 + 1


TestAIMD = AIMDMachine.TestCase
TestAIMD.settings = settings(max_examples=60, stateful_step_count=60, deadline=None)
