"""The way of a call that is not in the cache, on the background loop.

    run: single flight → slot → API key → send → decode → store → respond

Everything mutable is in `_LoopState`, so that a new loop, after a fork, starts clean.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import random
import time
from collections.abc import Awaitable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING

import orjson

from . import _retry
from ._aimd import AIMD
from ._attempt import Attempt, Emit
from ._cache import Entry, ResponseCache, now
from ._call import Call, Sample
from ._control import Control
from ._errors import BudgetExceeded, FailedAttempt, LLMError, UnknownPrice, UnsupportedParameter
from ._flight import Flights
from ._front import READING, Front, is_kept
from ._keys import APIKey
from ._leases import Leases
from ._limits import Controller, Limiter, ScopeStatistics
from ._rings import Rings, Turn
from ._settings import RateControl, Settings
from ._shared_control import SharedControl, SharedFile
from ._timeouts import Deadline
from ._tokens import likely_input_tokens
from ._types import Response

# Not where it is asked: what ends while the interpreter does must load nothing.
from ._worst_case import worst_case
from .providers._adapter import Connection, Outgoing

if TYPE_CHECKING:
    from ._spending import Spending

_WRITING = ("use", "refresh")


class _LoopState:
    """What belongs to one background loop: flights, limits and open connections."""

    def __init__(self, loop: asyncio.AbstractEventLoop, cache: ResponseCache, settings: Settings) -> None:
        rate_control = settings.rate_control
        self.loop = loop
        self.flights: Flights[list[Sample]] = Flights(Leases(cache.lease_directory))
        self.shared = SharedFile(cache.directory / "limits", quiet=rate_control != "shared")
        self.limiter = Limiter(functools.partial(self._controller, rate_control))
        self.rings = Rings(settings.keys, self.limiter)
        self.connections: dict[tuple[str, str], Connection] = {}
        self.random = random.Random()

    def _controller(self, rate_control: RateControl, scope: str) -> Controller:
        if rate_control == "aimd":
            return AIMD()
        if rate_control == "independent":
            return Control()
        return SharedControl(self.shared, scope, from_start=rate_control == "shared")


class Engine:
    """Takes calls the rest of the way; one per client."""

    def __init__(self, front: Front) -> None:
        self._front = front
        self._cache = front.cache
        self._settings = front.settings
        self._state: _LoopState | None = None

    def run(self, call: Call) -> Coroutine[None, None, Response]:
        """Send a call that is not in the cache and return its answer.

        Raises:
            LLMError: it failed; retries, or the time until its deadline, are over.
        """
        return self._run(call) if call.deadline is None else _within(call.deadline, call, self._run(call))

    def stream(self, call: Call, emit: Emit) -> Coroutine[None, None, Response]:
        """Like `run`, with the deltas given to `emit` as they arrive."""
        work = self._stream(call, emit)
        return work if call.deadline is None else _within(call.deadline, call, work)

    async def _run(self, call: Call) -> Response:
        if call.request.n == 1:
            return self._front.respond(call, await self._fetch(call, call.draws))
        samples = await self._stored(call, call.draws) if call.cache in READING else {}
        missing = [draw for draw in call.draws if draw not in samples]
        most = call.wire.most_samples
        groups = [missing[start : start + most] for start in range(0, len(missing), most)]
        outcomes = await asyncio.gather(
            *(self._fetch(call, group) for group in groups), return_exceptions=True
        )
        for group, outcome in zip(groups, outcomes, strict=True):
            if isinstance(outcome, BaseException):
                raise outcome
            samples.update(zip(group, outcome, strict=True))
        return self._front.respond(call, [samples[draw] for draw in call.draws])

    async def _stream(self, call: Call, emit: Emit) -> Response:
        return self._front.respond(call, await self._ask(call, call.draws, emit))

    async def _fetch(self, call: Call, draws: Sequence[int]) -> list[Sample]:
        """Get samples from the provider, or from an equal call that is asking for them already."""
        if call.cache != "use":
            return await self._ask(call, draws)
        key, mine = call.key(draws[0]), False

        def ask() -> Awaitable[list[Sample]]:
            nonlocal mine
            mine = True
            return self._ask(call, draws)

        while True:
            try:
                samples, paid = await self._state_here().flights.run(
                    key if len(draws) == 1 else f"{key}+{len(draws)}",
                    ask,
                    lambda: self._all_stored(call, draws),
                )
            except (BudgetExceeded, UnknownPrice):
                # What another call had no money for, this one may have.
                if mine or not self._spending(call, len(draws)).affordable():
                    raise
            else:
                return samples if paid else [replace(sample, cached=True) for sample in samples]

    async def _stored(self, call: Call, draws: Sequence[int]) -> dict[int, Sample]:
        """Those samples that the cache holds by now."""
        here, found = asyncio.get_running_loop(), {}
        entries = [self._cache.get_soon(call.key(draw), here) for draw in draws]
        for draw, entry in zip(draws, entries, strict=True):
            sample = self._front.kept(call, await entry)
            if sample is not None:
                found[draw] = sample
        return found

    async def _all_stored(self, call: Call, draws: Sequence[int]) -> list[Sample] | None:
        found = await self._stored(call, draws)
        return list(found.values()) if len(found) == len(draws) else None

    async def _ask(self, call: Call, draws: Sequence[int], emit: Emit | None = None) -> list[Sample]:
        """Get samples from the provider and store them before they are handed on."""
        samples: list[Sample] = []
        while len(samples) < len(draws):
            # A server that does not know how to give several gives one, and is asked for the others.
            wanted = draws[len(samples) :]
            answered = await self._send(call, len(wanted), emit)
            got = [answered] if len(draws) == 1 else _split(call, answered)[: len(wanted)]
            if call.cache in _WRITING:
                await self._store(call, dict(zip(wanted, got, strict=False)))
            samples += got
        return samples

    async def _store(self, call: Call, samples: Mapping[int, Sample]) -> None:
        here, created = asyncio.get_running_loop(), now()
        writes = [
            self._cache.put_soon(
                call.key(draw),
                Entry(sample.body, sample.sending, created, sample.answer.model, call.asked(draw)),
                here,
            )
            for draw, sample in samples.items()
            if is_kept(sample.answer, self._settings.kept)
        ]
        for write in writes:
            try:
                await asyncio.shield(write)
            except asyncio.CancelledError:
                # They are paid for: who waits for the end of this request must find them.
                await asyncio.wait(writes)
                raise

    async def _send(self, call: Call, samples: int, emit: Emit | None) -> Sample:
        """Attempts, one after the other, until one succeeds or there is no point in another.

        A slot is held while a request is under way and never while waiting for the next.
        """
        state, request, target = self._state_here(), call.request, call.target
        turn, secrets, connection = self._means(state, call, streamed=emit is not None)
        outgoing = self._outgoing(call, samples, secrets[0])
        scope = state.limiter.scope(target.provider, target.base_url, target.model, outgoing.key.identity)
        max_retries = self._settings.max_retries if request.max_retries is None else request.max_retries
        spending = self._spending(call, samples) if self._is_limited(call) else None
        # Providers charge a limit of tokens with all that a request may answer.
        cost = likely_input_tokens(call) + (request.max_tokens or 0) * samples
        queue, deadline = 0.0, call.deadline
        bound = functools.partial(worst_case, call, samples)
        failures: tuple[FailedAttempt, ...] = ()
        asked = time.perf_counter()
        while True:
            if spending is None:
                ticket = await (turn or scope).acquire(
                    call.max_concurrent, cost=cost, at_once=call.at_once, first=bool(failures)
                )
                hold = None
            else:
                try:
                    ticket, hold = await spending.acquire(turn or scope, cost, first=bool(failures))
                except LLMError as error:
                    raise _explained(error, call, secrets, failures) from None
            if turn is not None:
                scope, outgoing.key = turn.scope, turn.key
            waited = time.perf_counter() - asked
            queue += waited
            attempt = Attempt(call, outgoing, emit, functools.partial(scope.heard, ticket))
            if deadline is not None:
                deadline.unfailed += 1
            try:
                await attempt.make(connection)
            except BaseException as cancellation:
                scope.cancelled(ticket)
                # What was sent may be billed all the same.
                self._front.accounts.failed(call, cancellation, bound)
                if hold is not None:
                    hold.lost()
                raise
            failed, asked = attempt.error, time.perf_counter()
            scope.ended(ticket, failed)
            if failed is None:
                sample = attempt.sample(queue, failures)
                self._front.accounts.answered(call, sample, bound)
                if hold is not None:
                    hold.answered(sample.cost)
                if turn is not None:
                    turn.served()
                return sample
            if failed.maybe_billed:
                self._front.accounts.failed(call, failed, bound, attempt.usage)
            if hold is not None:
                hold.failed(failed)
            failures += (attempt.failure(waited),)
            if deadline is not None:
                deadline.unfailed -= 1
                deadline.failures += failures[-1:]
            verdict = _retry.judge(
                failed,
                attempts=len(failures),
                max_retries=max_retries,
                shown=attempt.first_token is not None,
                elsewhere=turn is not None and turn.failed(failed),
                random_source=state.random,
                budget=scope.retries,
                deadline=deadline,
            )
            if not verdict.retry:
                raise _explained(failed, call, secrets, failures, verdict.reason)
            # After a refusal the scope holds everyone back as long as it takes, this call included.
            await asyncio.sleep(0.0 if _retry.is_congestion(failed) else verdict.delay)

    def _means(
        self, state: _LoopState, call: Call, *, streamed: bool
    ) -> tuple[Turn | None, Sequence[APIKey], Connection]:
        """What a call is sent with: its way through several keys, if there are, all of them, a connection."""
        target, request = call.target, call.request
        try:
            turn = state.rings.turn(target, request)
            secrets = [state.rings.key(target, request.api_key)] if turn is None else turn.secrets
            connection = self._connection(state, call)
            if request.timeout is not None and request.timeout.watches and not streamed:
                _check_watchable(connection)
        except LLMError as error:
            error.provider, error.model = target.provider, request.model
            raise
        return turn, secrets, connection

    def _is_limited(self, call: Call) -> bool:
        """Whether a budget limits what the call may cost."""
        return call.request.budget is not None or self._settings.budget is not None

    def _spending(self, call: Call, samples: int) -> Spending:
        # Only calls with a budget need the module, and what it loads.
        from ._spending import Spending

        given = (call.request.budget, self._settings.budget)
        budgets = [budget for budget in given if budget is not None]
        return Spending(call, samples, budgets, self._front.accounts.prices())

    def _outgoing(self, call: Call, samples: int, key: APIKey) -> Outgoing:
        timeouts = self._settings.timeout
        if call.request.timeout is not None:
            timeouts = call.request.timeout.over(timeouts)
        return Outgoing(call.wire, call.body_for(samples), call.target, key, timeouts)

    def _state_here(self) -> _LoopState:
        loop = asyncio.get_running_loop()
        if self._state is None or self._state.loop is not loop:
            # After a fork the old state is the parent's: kept, so that finalizing it closes nothing there.
            self._abandoned = self._state
            self._state = _LoopState(loop, self._cache, self._settings)
        return self._state

    def _connection(self, state: _LoopState, call: Call) -> Connection:
        route = call.target.route
        transport = self._settings.transport or route.transport
        name = (route.adapter, transport)
        connection = state.connections.get(name)
        if connection is None:
            connection = state.connections[name] = call.adapter.connect(transport)
        return connection

    def statistics(self) -> list[ScopeStatistics]:
        """Every scope in use."""
        return self._state.limiter.statistics() if self._state else []

    async def close(self) -> None:
        """Close every connection."""
        state, self._state = self._state, None
        if state is not None:
            state.flights.close()
            state.shared.close()
            for connection in state.connections.values():
                with contextlib.suppress(Exception):  # a connection that cannot be closed is closed enough
                    await connection.close()


async def _within(deadline: Deadline, call: Call, work: Coroutine[None, None, Response]) -> Response:
    """What `work` returns by the deadline.

    It ends what this call waits for, not a request that others wait for as well.

    Raises:
        Timeout: the deadline has passed.
    """
    left = deadline.left
    if left > 0:
        timer = asyncio.timeout(left)
        try:
            async with timer:
                return await work
        except TimeoutError:
            if not timer.expired():
                raise
    else:
        work.close()
    error = deadline.missed()
    error.provider, error.model = call.target.provider, call.request.model
    raise error


def _check_watchable(connection: Connection) -> None:
    """Refuse what cannot be kept; as a client's default it holds where it can.

    Raises:
        UnsupportedParameter: the connection shows an answer only when all of it is there.
    """
    if connection.parts is None:
        raise UnsupportedParameter(
            "first_byte and idle cannot be told here, where the SDK shows a whole answer only at its end: "
            "leave them out of timeout, or use stream()",
            parameter="timeout",
        )


def _split(call: Call, answered: Sample) -> list[Sample]:
    """The samples of one request, each as it will be stored."""
    replies = call.adapter.split(orjson.loads(answered.body))
    return [
        replace(
            answered,
            answer=call.adapter.decode(reply),
            body=orjson.dumps(reply),
            attempts=0 if place else answered.attempts,
            failures=() if place else answered.failures,
            # Of the whole request, whose usage is the first sample's too.
            cost=Decimal(0) if place else answered.cost,
        )
        for place, reply in enumerate(replies)
    ]


def _explained(
    error: LLMError,
    call: Call,
    secrets: Iterable[APIKey],
    failures: tuple[FailedAttempt, ...],
    reason: str = "",
) -> LLMError:
    """The error as the user sees it: with the call's facts, without any key and the SDK's objects."""
    error.provider = call.target.provider
    error.model = call.request.model
    error.attempts, error.failures = len(failures), failures
    for key in secrets:
        error.message = key.scrub(error.message)
    if reason:
        error.message += f" ({reason})"
    error.args = (error.message,)
    error.__cause__ = error.__context__ = error.__traceback__ = None
    return error
