"""The way of a call that is not in the cache, on the background loop.

    run: single flight → send (_sending) → store → respond

Everything mutable is in `_LoopState`, so that a new loop, after a fork, starts clean.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING

import orjson

from ._attempt import Emit
from ._cache import Entry, now
from ._call import Call, Sample
from ._errors import BudgetExceeded, UnknownPrice
from ._flight import Flights
from ._front import READING, Front, is_kept
from ._leases import Leases
from ._limits import ScopeStatistics
from ._sending import Sender
from ._timeouts import Deadline
from ._types import Response

# Not where it is asked: what ends while the interpreter does must load nothing.

if TYPE_CHECKING:
    pass

_WRITING = ("use", "refresh")


class _LoopState:
    """What belongs to one background loop: the flights, and what sends."""

    def __init__(self, loop: asyncio.AbstractEventLoop, front: Front) -> None:
        self.loop = loop
        self.flights: Flights[list[Sample]] = Flights(Leases(front.cache.lease_directory))
        self.sender = Sender(front)


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
                if mine or not self._state_here().sender.spending(call, len(draws)).affordable():
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
            answered = await self._state_here().sender.send(call, len(wanted), emit)
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

    def _state_here(self) -> _LoopState:
        loop = asyncio.get_running_loop()
        if self._state is None or self._state.loop is not loop:
            # After a fork the old state is the parent's: kept, so that finalizing it closes nothing there.
            self._abandoned = self._state
            self._state = _LoopState(loop, self._front)
        return self._state

    def statistics(self) -> list[ScopeStatistics]:
        """Every scope in use."""
        return self._state.sender.limiter.statistics() if self._state else []

    async def close(self) -> None:
        """Close every connection."""
        state, self._state = self._state, None
        if state is not None:
            state.flights.close()
            await state.sender.close()


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
