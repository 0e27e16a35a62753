"""Rate control on the event loop: the calls of one scope wait until its controller allows them to be sent.

A scope is what a provider limits together: (provider, base URL, group of models, identity of the API key).
`Scope` asks its `Controller`, keeps the order of the calls, and sets one timer for the first that waits.
"""

from __future__ import annotations

import asyncio
import math
import sys
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, TypeAlias, cast

from ..errors import LLMError, OverloadedError, ProviderError
from ..events.events import LEAST_SECONDS, ROOT, Waits, count_calls, reason
from ..runtime import clock
from ..words import format_clock_time, format_duration
from .call_limits import DEFAULT_PATIENCE, IN_FLIGHT, InFlight, Patience, group_of
from .failures import (
    Outage,
    RetryBudget,
    end_retries,
    is_answer,
    is_congestion,
    is_outage,
    may_be_of_requests,
    note_outage,
)  # fmt: skip
from .state import Ticket

if TYPE_CHECKING:
    from ..._features.shared_pace.shared_controller import SharedController
    from ..._features.user_limits.scope_limits import ScopeLimits
    from .aimd import AIMD
    from .controller import AdaptiveController

TIMER_STEP = 0.001
"""Seconds that a timer is set later, because it may fire one clock tick early."""

_ASK_AGAIN = 0.02
"""Seconds until a scope asks again for a connection of this process, which another scope may give back."""


Controller: TypeAlias = "AdaptiveController | AIMD | SharedController"
"""Decides when the next request of a scope may be sent: `AdaptiveController` says by which rules."""

Share: TypeAlias = "Callable[[str, float, AdaptiveController, Collection[Ticket]], Controller]"
"""Makes a controller that processes share, from a scope's name, the time, its controller and its requests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeStatistics:
    """The state of a scope at one moment.

    `window` is how many requests may be in flight, None if only `max_concurrent` bounds them. `rate` is how
    many per second may be sent, None while no limit is known.
    """

    provider: str
    base_url: str | None
    model: str
    """Its name, without the date of a snapshot."""
    key: str
    """Fingerprint of the API key; of an account with more than one key, the fingerprint of the first."""
    window: int | None
    rate: float | None
    in_flight: int
    waiting: int
    gated_for: float
    """Seconds until the scope may send again; 0 when it may."""
    refusals: int
    """Refusals so far: answers with 429, 503 or 529."""
    down_for: float | None = None
    """Seconds since the provider is down; None if it is not. See docs/reliability.md."""
    next_try: float | None = None
    """Seconds until the next request is sent to a provider that is down."""


@dataclass(slots=True, eq=False)
class SlotRequest:
    """A call that waits for a slot in one scope or more. The first scope with room grants it."""

    granted: asyncio.Future[Ticket]
    tokens: float
    max_in_flight: int
    at_once: int
    patience: Patience | None
    """How long it waits while every scope is down; None waits for ever."""
    scope: Scope | None = None
    """The scope that has granted the slot."""
    joined: list[Scope] = field(default_factory=list)
    """The scopes in whose queues it waits."""

    def withdraw(self) -> None:
        """Give the slot back of a call that was cancelled in the event-loop iteration of the grant.

        A call that was cancelled while it waited stays in its queues until it is their first. To remove it
        now would make the cancellation of ten thousand calls quadratic.
        """
        if self.scope is not None:
            self.scope.record_withdrawal(self.granted.result())


class Scope:
    """Starts the calls of one scope in order of arrival, retries first. It belongs to one event loop."""

    def __init__(
        self, controller: Controller, name: str = "the provider", waits: Waits | None = None
    ) -> None:
        self.controller = controller
        self._waits = waits
        self._first_waiting: SlotRequest | None = None
        """A call that waited when the present second began; None if no call waits."""
        self.retries = RetryBudget()
        self.outage = Outage()
        self.limits: ScopeLimits | None = None
        """The user's own limits."""
        self.name = name
        self.used_last_until = -math.inf
        """Until then, this account sends only if no other account may."""
        self.share: Callable[[float, AdaptiveController, Collection[Ticket]], Controller] | None = None
        """Makes the controller that other processes share, after the first refusal."""
        self._tickets: set[Ticket] = set()
        """The requests in flight."""
        self._sent = 0
        self._give_up_at = math.inf
        """When the patience of the first waiting call ends, while the scope is down."""
        self._loop = asyncio.get_running_loop()
        self._all = IN_FLIGHT.setdefault(self._loop, InFlight())
        self._queue: deque[SlotRequest] = deque()
        self._timer: asyncio.TimerHandle | None = None

    async def acquire(
        self,
        max_in_flight: int,
        *,
        tokens: float = 1.0,
        at_once: int = sys.maxsize,
        first: bool = False,
        patience: Patience | None = None,
    ) -> Ticket:
        """Wait until a request may start. The request counts as in flight from then on.

        Before the first refusal, `at_once` more requests may start than were answered. With `first` the call
        goes before those that already wait.

        The ticket must be given back with `record_end`, `record_cancellation` or `record_withdrawal`. A call
        that is cancelled while it waits gives its slot back by itself. A `ProviderError` says that the
        provider was down for longer than the patience of the call.
        """
        if not self._queue:
            granted = self._admit(self._loop.time(), tokens, max_in_flight, at_once)
            if isinstance(granted, Ticket):
                return granted
        slot_request = SlotRequest(self._loop.create_future(), tokens, max_in_flight, at_once, patience)
        self.join(slot_request, first=first)
        try:
            return await slot_request.granted
        except asyncio.CancelledError:
            slot_request.withdraw()
            self.wake()
            raise

    def start(self, max_in_flight: int, tokens: float, at_once: int) -> Ticket | None:
        """Start a request if it may be sent now and no call waits. Returns its ticket, else None."""
        self._forget()
        if self._queue:
            return None
        granted = self._admit(self._loop.time(), tokens, max_in_flight, at_once)
        return granted if isinstance(granted, Ticket) else None

    def _admit(self, now: float, tokens: float, max_in_flight: int, at_once: int) -> Ticket | float:
        """A ticket for a request that may be sent now, else the time to ask again."""
        outage, every, limits = self.outage, self._all, self.limits
        if outage.watches and (ready := outage.ready_at(now)) > now:
            return ready
        if every.count >= every.most:
            return now + _ASK_AGAIN
        if limits is not None and (ready := limits.admit(now, tokens)) > now:
            return ready
        granted = self.controller.admit(now, tokens, max_in_flight, at_once)
        if limits is not None:
            limits.settle(granted, now, tokens)
        if isinstance(granted, Ticket):
            every.count += 1
            self._tickets.add(granted)
            self._sent = granted.order = self._sent + 1
            if outage.watches:
                outage.record_request(now, granted)
        return granted

    def seconds_until_gate(self) -> float:
        """Seconds until the gate opens; 0 if it is open."""
        return max(0.0, self.controller.gate - self._loop.time())

    def join(self, slot_request: SlotRequest, *, first: bool) -> None:
        self._forget()
        slot_request.joined.append(self)
        self._enqueue(slot_request, first=first)
        if self._first_waiting is None and self._waits is not None:
            self._first_waiting = slot_request
            self._loop.call_later(LEAST_SECONDS, self._look_at_waits)
        if self.outage.down_since is not None:
            self._note_patience(slot_request)
        if self._queue[0] is slot_request or self.outage.down_since is not None:
            self.wake()

    def _enqueue(self, slot_request: SlotRequest, *, first: bool) -> None:
        (self._queue.appendleft if first else self._queue.append)(slot_request)

    @property
    def waiting(self) -> int:
        return sum(not waiting.granted.done() for waiting in tuple(self._queue))

    def is_down(self) -> bool:
        """Whether the server is down, and no probe is due."""
        return self.outage.down_since is not None and self.seconds_until_open() > 0

    def seconds_until_open(self) -> float:
        """Seconds until the scope may send again, as far as that is known; 0 if it may send now."""
        if self.outage.down_since is None:
            return self.seconds_until_gate()
        return max(0.0, self.outage.next_try - self._loop.time())

    def _look_at_waits(self) -> None:
        """Tell why a call has waited for a second."""
        waited, self._first_waiting = self._first_waiting, None
        waiting = self.waiting
        if not waiting or self._waits is None or waited is None:
            return
        self._first_waiting = self._queue[-1]
        self._loop.call_later(LEAST_SECONDS, self._look_at_waits)
        if waited.granted.done():
            return
        down_since, who = self.outage.down_since, count_calls(waiting)
        if down_since is not None:
            since = format_clock_time(clock.time() - (self._loop.time() - down_since))
            cause = "" if self.outage.cause is None else f": {reason(self.outage.cause)}"
            left = self.seconds_until_open()
            text = f"{who}, down since {since}, next try in {format_duration(left)}{cause}"
            self._waits.tell(self.name, "down", text, seconds=left)
        elif (pause := self.seconds_until_gate()) > LEAST_SECONDS:
            text = f"{who} for the provider's rate limit, sending resumes in {format_duration(pause)}"
            self._waits.tell(self.name, "pause", text, seconds=pause)
        elif self.limits is not None and self.limits.holds_back:
            self._waits.tell(self.name, "rate", f"{who} for your own limit: {self.limits}")
        elif (
            self.controller.in_flight >= min(self._queue[0].max_in_flight, self.controller.window)
            or self.outage.watches
            or self._all.count >= self._all.most
            or not self.controller.is_limited(self._loop.time())
        ):
            # Also while the rate still grows, because no limit is known or because an outage has ended.
            self._waits.tell(self.name, "full", f"{who}, {self.controller.in_flight} requests are in flight")
        else:
            known = not self.controller.open and self.controller.rate != math.inf
            rate = f", now {self.controller.rate:.3g} requests/s" if known else ""
            self._waits.tell(self.name, "rate", f"{who} for the provider's rate limit{rate}")

    def _forget(self) -> None:
        """Drop calls that another scope has served. They would pile up while this gate is closed."""
        while self._queue and self._queue[0].granted.done():
            self._queue.popleft()

    def record_end(
        self,
        ticket: Ticket,
        error: LLMError | None,
        *,
        tokens: float | None = None,
        caller: object = None,
        suspect: bool = False,
    ) -> bool:
        """End a request that was sent; `error` is None after a success.

        `tokens` are those that a limit has counted for the request, if known. `caller` identifies the call,
        so that failures of one call differ from failures of many. A `suspect` is rather the reason for its
        failure than an outage.

        Returns whether a call that was refused backs off by itself: the gate of the scope does not hold it
        back.
        """
        now, controller, backs_off = self._loop.time(), self.controller, False
        self._leave(ticket)
        outage = self.outage
        if error is None:
            controller.record_success(now, ticket, tokens=tokens)
            self.retries.answers += 1
            outage.answered_at, outage.excused_until = now, -math.inf
            if outage.watches:
                self._works(now, ticket)
        else:
            was_down = outage.down_since is not None
            if now < outage.excused_until and may_be_of_requests(error):
                suspect = True
                end_retries(error)
            if is_outage(error) and not suspect:
                self._note_failure(now, ticket, error, caller)
            elif outage.watches:
                if suspect or is_answer(error):
                    self._works(now, ticket)
                else:
                    outage.record_end(now, ticket)
            if not is_congestion(error) or (was_down and is_outage(error)):
                controller.record_failure(now, ticket)
            else:
                is_overload = isinstance(error, OverloadedError)
                record = controller.record_overload if is_overload else controller.record_refusal
                backs_off = record(now, ticket, error.retry_after)
                if self.share is not None:
                    alone = cast("AdaptiveController", controller)
                    self.controller, self.share = self.share(now, alone, self._tickets), None
        if self._queue:
            self.wake()
        return backs_off

    def _works(self, now: float, ticket: Ticket) -> None:
        down_since = self.outage.down_since
        self.outage.works(ticket)
        if down_since is not None and self.outage.down_since is None:
            self._give_up_at = math.inf
            ROOT.info("%s answers again after %s", self.name, format_duration(now - down_since))

    def _note_failure(self, now: float, ticket: Ticket, error: LLMError, caller: object) -> None:
        outage = self.outage
        was_down = outage.down_since is not None
        outage.record_failure(now, ticket, error, caller)
        if was_down or outage.down_since is None:
            return
        for slot_request in self._queue:
            self._note_patience(slot_request)
        ROOT.warning(
            "%s is down since %s, next try in %s: %s",
            self.name,
            format_clock_time(clock.time() - (now - outage.down_since)),
            format_duration(outage.next_try - now),
            reason(error),
        )

    def excuse(self, until: float) -> None:
        """Note that the server answers other requests, so that calls do not wait for it."""
        ROOT.warning("%s fails while its server answers other requests, and is not waited for", self.name)
        self._give_up_at = math.inf
        self.outage.excuse(until)
        self.wake()

    def record_cancellation(self, ticket: Ticket) -> None:
        self.controller.record_cancellation(ticket)
        self._end_uncounted(ticket)

    def record_withdrawal(self, ticket: Ticket) -> None:
        self.controller.record_withdrawal(ticket)
        self._end_uncounted(ticket, withdrawn=True)

    def _leave(self, ticket: Ticket, *, withdrawn: bool = False) -> None:
        """Give back the connection of a request that is no longer in flight."""
        if self.limits is not None:
            self.limits.end(ticket, withdrawn=withdrawn)
        self._all.count -= 1
        self._tickets.discard(ticket)

    def _end_uncounted(self, ticket: Ticket, *, withdrawn: bool = False) -> None:
        self._leave(ticket, withdrawn=withdrawn)
        if self.outage.watches:
            self.outage.record_end(self._loop.time(), ticket)
        self.wake()

    def gives_up_at(self, patience: Patience | None) -> float:
        """The time at which a call stops waiting for a provider that is down; infinity if it is not down."""
        down_since = self.outage.down_since
        if down_since is None or patience is None:
            return math.inf
        return max(down_since, patience.since) + self.outage.seconds_of(patience)

    def too_long_down(self, patience: Patience | None) -> ProviderError:
        """The error of a call whose patience has ended."""
        outage, now = self.outage, self._loop.time()
        cause = outage.cause
        assert outage.down_since is not None
        assert isinstance(cause, ProviderError)
        is_not_started = outage.is_not_started(patience)
        at_once = is_not_started or not (patience and patience.seconds)
        error = type(cause)(
            f"{self.name} was down for {format_duration(now - outage.down_since)}, since "
            f"{format_clock_time(clock.time() - (now - outage.down_since))}, and "
            f"{'is not waited for' if at_once else 'outage_patience is over'}; "
            f"the last failure: {cause.message}",
            status=cause.status,
            code=cause.code,
            request_id=cause.request_id,
        )
        vars(error).update({"_refused_here": True} if is_not_started else {})
        note_outage(error, outage.down_since, DEFAULT_PATIENCE if outage.one_caller else math.inf)
        return error

    def _note_patience(self, slot_request: SlotRequest) -> None:
        self._give_up_at = min(self._give_up_at, self.gives_up_at(slot_request.patience))

    def _give_up(self, now: float) -> None:
        """Fail the waiting calls whose patience has ended, unless another scope may still serve them."""
        self._give_up_at = math.inf
        for slot_request in self._queue:
            if slot_request.granted.done():
                continue
            at = max(scope.gives_up_at(slot_request.patience) for scope in slot_request.joined)
            if at <= now:
                slot_request.granted.set_exception(self.too_long_down(slot_request.patience))
            else:
                self._give_up_at = min(self._give_up_at, at)

    def statistics(self, provider: str, base_url: str | None, model: str, key: str) -> ScopeStatistics:
        controller, now, down_since = self.controller, self._loop.time(), self.outage.down_since
        window, rate = controller.window, controller.rate
        return ScopeStatistics(
            provider=provider,
            base_url=base_url,
            model=model,
            key=key,
            window=None if window == math.inf else max(1, math.floor(window)),
            rate=None if controller.open or rate == math.inf else rate,
            in_flight=controller.in_flight,
            waiting=self.waiting,
            gated_for=self.seconds_until_gate(),
            refusals=controller.refusals,
            down_for=None if down_since is None else now - down_since,
            next_try=None if down_since is None else max(0.0, self.outage.next_try - now),
        )

    def wake(self) -> None:
        """Grant slots to the calls that may be sent now, and set the timer for the next one."""
        queue = self._queue
        while queue:
            slot_request = queue[0]
            if not slot_request.granted.done():
                now = self._loop.time()
                granted = self._admit(
                    now, slot_request.tokens, slot_request.max_in_flight, slot_request.at_once
                )
                if not isinstance(granted, Ticket):
                    if self._give_up_at <= now:
                        self._give_up(now)
                    self._wait_until(max(min(granted, self._give_up_at), now + TIMER_STEP))
                    return
                slot_request.scope = self
                slot_request.granted.set_result(granted)
            queue.popleft()

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
    """The scopes of one client. `make` makes the controller of a scope from its name."""

    limit: Callable[[str, str | None, str, str], ScopeLimits | None] | None = None
    """Makes the user's own limits of a scope. Several servers of a host share them."""

    def __init__(
        self, make: Callable[[str], Controller], waits: Waits | None = None, share: Share | None = None
    ) -> None:
        self._make, self._share = make, share
        self._waits = waits
        self.scopes: dict[tuple[tuple[str, str | None, str, str], object], Scope] = {}
        """By provider, base URL, group of models and key, and by class."""

    def scope(
        self,
        provider: str,
        base_url: str | None,
        model: str,
        key_identity: str,
        kind: Callable[[Controller, str, Waits | None], Scope] = Scope,
    ) -> Scope:
        """The scope of a call, made at its first request."""
        name = (provider, base_url, group_of(model), key_identity)
        scope = self.scopes.get((name, kind))
        if scope is None:
            in_file = " ".join(map(str, name))
            scope = self.scopes[name, kind] = kind(self._make(in_file), f"{provider} {name[2]}", self._waits)
            scope.share = None if self._share is None else partial(self._share, in_file)
            if self.limit is not None:
                scope.limits = self.limit(provider, base_url if kind is Scope else None, *name[2:])
        return scope

    def statistics(self) -> list[ScopeStatistics]:
        """The state of every scope that was used."""
        return [scope.statistics(*name) for (name, _), scope in tuple(self.scopes.items())]
