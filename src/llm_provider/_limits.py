"""Rate control: how many requests of one scope may be under way, and when none may start.

A scope is what a provider limits together: (provider, base_url, model, identity of the API key). `Window`
is the rule, pure and without a clock of its own; `Scope` lets callers wait for it.

| state | a success | a congestion error | sends |
|---|---|---|---|
| open: nothing was ever refused | stays open | cut; gate | in flight < max_concurrent |
| limited | +1 per window, while 80 % of it is used | cut, once per episode; gate | in flight < window |
| gated | as above | the gate moves out, no cut | none until the gate opens |

Congestion errors are what `_retry.is_congestion` says; every other outcome leaves the window alone.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass

_CUT = 0.5
"""AIMD's multiplicative decrease, as TCP has it (Chiu and Jain 1989)."""
_USED = 0.8
"""Below this share the window is not what limits, so a success proves nothing about a larger one."""


class Window:
    """Additive increase, multiplicative decrease, with one cut per congestion episode and a floor of 1.

    Times are seconds of one monotonic clock, given by the caller.

    >>> window = Window()
    >>> for _ in range(8):
    ...     window.started()
    >>> window.congested(sent=1.0, now=2.0, delay=5.0)
    >>> window.size, window.gate
    (4.0, 7.0)
    >>> window.congested(sent=1.5, now=2.1, delay=0.0)  # sent before the cut: the same episode
    >>> window.size
    4.0
    """

    __slots__ = ("congestions", "gate", "in_flight", "last_cut", "size")

    def __init__(self) -> None:
        self.size = math.inf
        self.in_flight = 0
        self.gate = -math.inf
        self.last_cut = -math.inf
        self.congestions = 0

    def room(self, ceiling: int) -> bool:
        """Whether one more may be in flight."""
        return self.in_flight < max(1, math.floor(min(self.size, ceiling)))

    def started(self) -> None:
        """A request was sent."""
        self.in_flight += 1

    def ended(self) -> None:
        """A request is over, however."""
        self.in_flight -= 1

    def succeeded(self) -> None:
        """The provider served a request, which is still counted as in flight."""
        if self.size < math.inf and self.in_flight >= _USED * self.size:
            self.size += 1 / self.size

    def congested(self, *, sent: float, now: float, delay: float) -> None:
        """The provider refused a request that was sent at `sent`; nothing is sent for `delay` seconds."""
        self.congestions += 1
        self.gate = max(self.gate, now + delay)
        if sent > self.last_cut:
            self.size = max(1.0, min(self.size, self.in_flight) * _CUT)
            self.last_cut = now


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeStatistics:
    """A scope at one moment. `window` is None while nothing was ever refused."""

    provider: str
    base_url: str | None
    model: str
    window: int | None
    in_flight: int
    waiting: int
    gated_for: float
    """Seconds until the scope may send again; 0 when it may."""
    congestions: int
    """Answers so far that said "too much"."""


class Scope:
    """Lets the calls of one scope start, in order of arrival, retried ones first. Lives on one loop."""

    def __init__(self) -> None:
        self.window = Window()
        self._loop = asyncio.get_running_loop()
        self._waiters: deque[tuple[asyncio.Future[None], int]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    async def acquire(self, ceiling: int, *, first: bool = False) -> None:
        """Wait until a request may start; it is counted as in flight from then on.

        Args:
            ceiling: `max_concurrent` of the caller.
            first: Whether to go before those that wait already.

        Cancelling gives the place back.
        """
        if not self._waiters and self._may_start(ceiling):
            self.window.started()
            return
        waiter = self._loop.create_future()
        entry = (waiter, ceiling)
        if first:
            self._waiters.appendleft(entry)
        else:
            self._waiters.append(entry)
        self._wake()
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                # Granted and cancelled in the same turn of the loop.
                self.release()
            else:
                # A cancelled future stays in the queue until `_wake` meets it: removing it here would
                # make cancelling ten thousand waiters quadratic.
                waiter.cancel()
                self._wake()
            raise

    def release(self) -> None:
        """End a request that `acquire` started."""
        self.window.ended()
        self._wake()

    def congested(self, *, sent: float, delay: float) -> None:
        """React to a refusal: cut the window once per episode and stop the scope for `delay` seconds."""
        self.window.congested(sent=sent, now=self._loop.time(), delay=delay)

    def statistics(self, provider: str, base_url: str | None, model: str) -> ScopeStatistics:
        """The scope as it is now."""
        size = self.window.size
        return ScopeStatistics(
            provider=provider,
            base_url=base_url,
            model=model,
            window=None if size == math.inf else max(1, math.floor(size)),
            in_flight=self.window.in_flight,
            waiting=sum(not waiter.done() for waiter, _ in self._waiters),
            gated_for=max(0.0, self.window.gate - self._loop.time()),
            congestions=self.window.congestions,
        )

    def _may_start(self, ceiling: int) -> bool:
        return self._loop.time() >= self.window.gate and self.window.room(ceiling)

    def _wake(self) -> None:
        while self._waiters:
            waiter, ceiling = self._waiters[0]
            if waiter.done():
                self._waiters.popleft()
            elif self._may_start(ceiling):
                self._waiters.popleft()
                self.window.started()
                waiter.set_result(None)
            else:
                self._wait_for_gate()
                return

    def _wait_for_gate(self) -> None:
        if self._loop.time() < self.window.gate and self._timer is None:
            # A timer may fire a clock tick early; a millisecond later there is no second round.
            self._timer = self._loop.call_at(self.window.gate + 0.001, self._gate_opened)

    def _gate_opened(self) -> None:
        self._timer = None
        self._wake()


class Limiter:
    """The scopes of one client."""

    def __init__(self) -> None:
        self._scopes: dict[Hashable, Scope] = {}

    def scope(self, provider: str, base_url: str | None, model: str, key_identity: str) -> Scope:
        """The scope of a call, made on its first request."""
        name = (provider, base_url, model, key_identity)
        scope = self._scopes.get(name)
        if scope is None:
            scope = self._scopes[name] = Scope()
        return scope

    def statistics(self) -> list[ScopeStatistics]:
        """Every scope that has been used."""
        return [scope.statistics(*name[:3]) for name, scope in self._scopes.items()]  # type: ignore[index]  # made of a tuple
