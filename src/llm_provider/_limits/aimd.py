"""Additive increase, multiplicative decrease: the simple rule, kept as the baseline (`rate_control="aimd"`).

| state | a success | a refusal | sends |
|---|---|---|---|
| open: nothing was ever refused | stays open | cut; gate | in flight < max_concurrent |
| limited | +1 per window, while 80 % of it is used | cut, once per episode; gate | in flight < window |
| gated | as above | the gate moves out, no cut | none until the gate opens |
"""

from __future__ import annotations

import math
import sys

from .headers import Headroom
from .rate_estimator import Ticket

_CUT = 0.5
"""AIMD's multiplicative decrease, as TCP has it (Chiu and Jain 1989)."""
_USED = 0.8
"""Below this share the window is not what limits, so a success proves nothing about a larger one."""
_GATE = 1.0
"""Seconds for which nothing is sent after a refusal that does not say how long."""


class AIMD:
    """One cut per congestion episode, a floor of 1; a `Controller` that knows no rates and reads no headers.

    Times are seconds of one monotonic clock, given by the caller.

    >>> control = AIMD()
    >>> tickets = [control.sent(1.0) for _ in range(8)]
    >>> control.refused(2.0, tickets[0], retry_after=5.0)
    >>> control.window, control.gate, control.ready_at(2.5)
    (4.0, 7.0, inf)
    >>> control.refused(2.1, tickets[1])  # sent before the cut: the same episode
    >>> control.window
    4.0
    """

    rate = math.inf
    open = False
    """Whether there is a rate yet to be found; here there never is one."""

    def __init__(self) -> None:
        self.window = math.inf
        self.in_flight = 0
        self.gate = -math.inf
        self.refusals = 0
        self._number = 0
        self._last_cut = -math.inf

    def ready_at(
        self, now: float, cost: float = 1.0, max_in_flight: int = sys.maxsize, at_once: int = sys.maxsize
    ) -> float:
        """When a request may be sent: `now`, a later time, or infinity if an answer must come first."""
        if self.in_flight >= max(1, math.floor(min(self.window, max_in_flight))):
            return math.inf
        return max(now, self.gate)

    def admit(
        self, now: float, cost: float = 1.0, max_in_flight: int = sys.maxsize, at_once: int = sys.maxsize
    ) -> Ticket | float:
        """A ticket for a request that may be sent now, else when to ask again."""
        ready = self.ready_at(now, cost, max_in_flight, at_once)
        return ready if ready > now else self.sent(now, cost, at_once)

    def sent(self, now: float, cost: float = 1.0, at_once: int = sys.maxsize) -> Ticket:
        """A request is sent."""
        self.in_flight += 1
        self._number += 1
        return Ticket(self._number, now, self.in_flight, cost, 0.0, math.inf, 0.0)

    def on_headers(self, ticket: Ticket, headroom: Headroom) -> None:
        """Headers are not read."""

    def succeeded(self, now: float, ticket: Ticket, *, cost: float | None = None) -> None:
        """The provider served a request."""
        if self.window < math.inf and self.in_flight >= _USED * self.window:
            self.window += 1 / self.window
        self.in_flight -= 1

    def refused(self, now: float, ticket: Ticket, retry_after: float | None = None) -> None:
        """The provider refused a request, and nothing is sent for `retry_after` seconds."""
        self.refusals += 1
        self.gate = max(self.gate, now + (_GATE if retry_after is None else retry_after))
        if ticket.at > self._last_cut:
            self.window = max(1.0, min(self.window, self.in_flight) * _CUT)
            self._last_cut = now
        self.in_flight -= 1

    def overloaded(self, now: float, ticket: Ticket, retry_after: float | None = None) -> None:
        """The provider has too much to do: the same as a refusal."""
        self.refused(now, ticket, retry_after)

    def failed(self, now: float, ticket: Ticket) -> None:
        """A request failed for another reason: the window stays."""
        self.in_flight -= 1

    def cancelled(self, ticket: Ticket) -> None:
        """A request was given up while it was under way."""
        self.in_flight -= 1

    def withdrawn(self, ticket: Ticket) -> None:
        """A request was given up before it was sent."""
        self.in_flight -= 1
