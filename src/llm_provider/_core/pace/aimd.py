"""Additive increase, multiplicative decrease: the simple controller of `rate_control="aimd"`, a baseline.

| state | at a success | at a refusal | sends while |
|---|---|---|---|
| open: no refusal yet | stays open | cut; gate | in flight < max_concurrent |
| limited | +1 per window, while 80 % of it is used | cut, once per episode; gate | in flight < window |
| gated | as above | the gate opens later; no cut | not before the gate opens |
"""

import math

from .headers import Headroom
from .state import Ticket

_CUT = 0.5
"""Multiplicative decrease, the same as in TCP (Chiu and Jain 1989)."""
_USED = 0.8
"""Share of the window that must be in use. Below it, a success proves nothing about a larger window."""
_GATE = 1.0
"""Seconds without requests after a refusal without Retry-After."""


class AIMD:
    """A `Controller` without rates and headers: one cut per congestion episode, down to a window of 1.

    Times are seconds of one monotonic clock, given by the caller.
    """

    rate = math.inf
    open = False
    """Whether a limit on the rate is still unknown. This controller has no rate."""

    def __init__(self) -> None:
        self.window = math.inf
        self.in_flight = 0
        self.gate = -math.inf
        self.refusals = 0
        self._number = 0
        self._last_cut = -math.inf

    def ready_at(self, now: float, tokens: float, max_in_flight: int, at_once: int) -> float:
        if self.in_flight >= max(1, math.floor(min(self.window, max_in_flight))):
            return math.inf
        return max(now, self.gate)

    def admit(self, now: float, tokens: float, max_in_flight: int, at_once: int) -> Ticket | float:
        ready = self.ready_at(now, tokens, max_in_flight, at_once)
        return ready if ready > now else self.record_request(now, tokens, at_once)

    def record_request(self, now: float, tokens: float, at_once: int) -> Ticket:
        self.in_flight += 1
        self._number += 1
        return Ticket(self._number, now, self.in_flight, tokens, 0.0, math.inf, 0.0)

    def is_limited(self, now: float) -> bool:
        """False: only the requests in flight and the gate hold requests back."""
        return False

    def on_headers(self, ticket: Ticket, headroom: Headroom) -> None:
        """Ignore the headers."""

    def record_success(self, now: float, ticket: Ticket, *, tokens: float | None = None) -> None:
        if self.window < math.inf and self.in_flight >= _USED * self.window:
            self.window += 1 / self.window
        self.in_flight -= 1

    def record_refusal(self, now: float, ticket: Ticket, retry_after: float | None = None) -> bool:
        """Cut the window once per episode. Returns False: the gate holds every call back."""
        self.refusals += 1
        self.gate = max(self.gate, now + (_GATE if retry_after is None else retry_after))
        if ticket.at > self._last_cut:
            self.window = max(1.0, min(self.window, self.in_flight) * _CUT)
            self._last_cut = now
        self.in_flight -= 1
        return False

    record_overload = record_refusal

    def record_cancellation(self, ticket: Ticket) -> None:
        self.in_flight -= 1

    record_withdrawal = record_cancellation

    def record_failure(self, now: float, ticket: Ticket) -> None:
        self.in_flight -= 1
