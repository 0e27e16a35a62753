"""Rate control on the loop: calls of one scope wait here until its controller lets them go.

A scope is what a provider limits together: (provider, base URL, group of models, identity of the API key).
Its `Controller` decides when a request may go, without a clock or a loop of its own: `_control.Control`, or
`_aimd.AIMD`. `Scope` asks it, keeps the order, and sets one timer for the first that waits. What a failure
means is `_retry`'s business; here it is only told to the controller.
"""

from __future__ import annotations

import asyncio
import functools
import math
import re
import sys
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from .._errors import LLMError, OverloadedError
from .headers import Headroom, headroom
from .rate_estimator import Ticket
from .retry import RetryBudget, is_congestion

_TIMER_STEP = 0.001
"""Seconds. A timer may fire a clock tick early; a millisecond later there is no second round."""

_VERSION = re.compile(r"(-\d{4}-\d{2}-\d{2}|-\d{8}|-latest|@\d{8})$")
"""What a dated snapshot adds to the name of its model. Providers limit the two together."""


class Controller(Protocol):
    """Decides when the next request of a scope may go; see `_control.Control`."""

    @property
    def in_flight(self) -> int:
        """Requests under way."""

    @property
    def gate(self) -> float:
        """Nothing is sent before."""

    @property
    def refusals(self) -> int:
        """Answers so far that said "too much"."""

    @property
    def rate(self) -> float:
        """Requests a second that may be sent now."""

    @property
    def window(self) -> float:
        """Requests that may be in flight."""

    @property
    def open(self) -> bool:
        """Whether nothing has shown yet that there is a limit on the rate."""

    def admit(self, now: float, cost: float, max_in_flight: int, at_once: int) -> Ticket | float: ...
    def on_headers(self, ticket: Ticket, headroom: Headroom) -> None: ...
    def succeeded(self, now: float, ticket: Ticket, *, cost: float | None) -> None: ...
    def refused(self, now: float, ticket: Ticket, retry_after: float | None) -> None: ...
    def overloaded(self, now: float, ticket: Ticket, retry_after: float | None) -> None: ...
    def failed(self, now: float, ticket: Ticket) -> None: ...
    def cancelled(self, ticket: Ticket) -> None: ...
    def withdrawn(self, ticket: Ticket) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeStatistics:
    """A scope at one moment.

    `window` is how many requests may be under way, None where only `max_concurrent` bounds them; `rate` how
    many a second may be sent, None while nothing has shown that there is a limit.
    """

    provider: str
    base_url: str | None
    model: str
    """Without the date of a snapshot."""
    key: str
    """The API key's fingerprint; of several keys of one account, that of the first."""
    window: int | None
    rate: float | None
    in_flight: int
    waiting: int
    gated_for: float
    """Seconds until the scope may send again; 0 when it may."""
    refusals: int
    """Answers so far that said "too much"."""


@dataclass(slots=True, eq=False)
class SlotRequest:
    """A call that waits for leave to send, in one scope or in several of which the first lets it go."""

    granted: asyncio.Future[Ticket]
    tokens: float
    max_in_flight: int
    at_once: int
    scope: Scope | None = None
    """The one that has let it go."""

    def withdraw(self) -> None:
        """Give up, the call being cancelled: while it waits, or in the turn of the loop that let it go."""
        if not self.granted.done() or self.granted.cancelled():
            # It stays in its queues until they meet it: removing it here would make cancelling ten thousand
            # waiters quadratic.
            self.granted.cancel()
        elif self.scope is not None:
            self.scope.withdrawn(self.granted.result())


class Scope:
    """Lets the calls of one scope start, in order of arrival, retried ones first. Lives on one loop."""

    def __init__(self, controller: Controller) -> None:
        self.controller = controller
        self.retries = RetryBudget()
        self._loop = asyncio.get_running_loop()
        self._waiters: deque[SlotRequest] = deque()
        self._timer: asyncio.TimerHandle | None = None

    async def acquire(
        self, max_in_flight: int, *, tokens: float = 1.0, at_once: int = sys.maxsize, first: bool = False
    ) -> Ticket:
        """Wait until a request may start; it is counted as in flight from then on.

        Args:
            max_in_flight: `max_concurrent` of the caller.
            tokens: Estimated tokens of the request.
            at_once: So many more than were answered may start as long as nothing was refused.
            first: Whether to go before those that wait already.

        Returns:
            What must be given back, to `ended` or `cancelled`. Cancelled while it waits, a call gives its
            place back by itself.
        """
        if not self._waiters:
            granted = self.controller.admit(self._loop.time(), tokens, max_in_flight, at_once)
            if isinstance(granted, Ticket):
                return granted
        waiter = SlotRequest(self._loop.create_future(), tokens, max_in_flight, at_once)
        self.join(waiter, first=first)
        try:
            return await waiter.granted
        except asyncio.CancelledError:
            waiter.withdraw()
            self.wake()
            raise

    def start(self, max_in_flight: int, tokens: float, at_once: int) -> Ticket | None:
        """Start a request if that may be now and nobody waits for it."""
        self._forget()
        if self._waiters:
            return None
        granted = self.controller.admit(self._loop.time(), tokens, max_in_flight, at_once)
        return granted if isinstance(granted, Ticket) else None

    def gated_for(self) -> float:
        """Seconds until the gate opens; 0 where it is open."""
        return max(0.0, self.controller.gate - self._loop.time())

    def join(self, waiter: SlotRequest, *, first: bool) -> None:
        """Let a call wait here."""
        self._forget()
        if first:
            self._waiters.appendleft(waiter)
        else:
            self._waiters.append(waiter)
        if self._waiters[0] is waiter:
            self.wake()

    def _forget(self) -> None:
        """Drop those whom another scope has let go: while this one is gated, they would pile up."""
        while self._waiters and self._waiters[0].granted.done():
            self._waiters.popleft()

    def on_headers(self, ticket: Ticket, headers: Mapping[str, str]) -> None:
        """Take in the headers of an answer, of a success or a failure."""
        told = headroom(headers)
        if told is not None:
            self.controller.on_headers(ticket, told)

    def ended(self, ticket: Ticket, error: LLMError | None, *, tokens: float | None = None) -> None:
        """End a request that was sent.

        Args:
            ticket: Of the request.
            error: Why it failed; None if it did not.
            tokens: Tokens that a limit has counted for it, where that is known.
        """
        now, controller = self._loop.time(), self.controller
        if error is None:
            controller.succeeded(now, ticket, cost=tokens)
            self.retries.earn()
        elif not is_congestion(error):
            controller.failed(now, ticket)
        elif isinstance(error, OverloadedError):
            controller.overloaded(now, ticket, error.retry_after)
        else:
            controller.refused(now, ticket, error.retry_after)
        self.wake()

    def cancelled(self, ticket: Ticket) -> None:
        """End a request that was given up while it was under way."""
        self.controller.cancelled(ticket)
        self.wake()

    def withdrawn(self, ticket: Ticket) -> None:
        """Give back a request's place before it was sent."""
        self.controller.withdrawn(ticket)
        self.wake()

    def statistics(self, provider: str, base_url: str | None, model: str, key: str) -> ScopeStatistics:
        """The scope as it is now."""
        controller = self.controller
        window, rate = controller.window, controller.rate
        return ScopeStatistics(
            provider=provider,
            base_url=base_url,
            model=model,
            key=key,
            window=None if window == math.inf else max(1, math.floor(window)),
            rate=None if controller.open or rate == math.inf else rate,
            in_flight=controller.in_flight,
            waiting=sum(not waiter.granted.done() for waiter in tuple(self._waiters)),
            gated_for=self.gated_for(),
            refusals=controller.refusals,
        )

    def wake(self) -> None:
        """Let those go that may, and set the timer for the next."""
        waiters, controller = self._waiters, self.controller
        while waiters:
            waiter = waiters[0]
            if not waiter.granted.done():
                now = self._loop.time()
                granted = controller.admit(now, waiter.tokens, waiter.max_in_flight, waiter.at_once)
                if not isinstance(granted, Ticket):
                    self._wait_until(max(granted, now + _TIMER_STEP))
                    return
                waiter.scope = self
                waiter.granted.set_result(granted)
            waiters.popleft()

    def _wait_until(self, when: float) -> None:
        if when == math.inf or (self._timer is not None and self._timer.when() <= when):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(when, self._is_time)

    def _is_time(self) -> None:
        self._timer = None
        self.wake()


class Limiter:
    """The scopes of one client.

    Args:
        make: Makes the controller of a scope, of which it gets a name.
    """

    def __init__(self, make: Callable[[str], Controller]) -> None:
        self._make = make
        self._scopes: dict[tuple[str, str | None, str, str], Scope] = {}

    def scope(self, provider: str, base_url: str | None, model: str, key_identity: str) -> Scope:
        """The scope of a call, made on its first request."""
        name = (provider, base_url, group_of(model), key_identity)
        scope = self._scopes.get(name)
        if scope is None:
            scope = self._scopes[name] = Scope(self._make(" ".join(map(str, name))))
        return scope

    def statistics(self) -> list[ScopeStatistics]:
        """Every scope that has been used."""
        return [scope.statistics(*name) for name, scope in tuple(self._scopes.items())]


@functools.lru_cache(maxsize=1024)
def group_of(model: str) -> str:
    """The model whose limits a name shares: its own, without the date of a snapshot.

    >>> group_of("gpt-5.4-2026-03-05"), group_of("claude-opus-4-5-20251101"), group_of("gpt-5.4-mini")
    ('gpt-5.4', 'claude-opus-4-5', 'gpt-5.4-mini')
    """
    return _VERSION.sub("", model)
