"""The way of a call that is not in the cache, on the background loop.

    run: single flight → send (_sending) → store → respond

Everything mutable is in `_LoopState`, so that a new loop, after a fork, starts clean.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import TypeAlias

import orjson

from . import _loop
from ._attempt import Emit
from ._cache import Entry, now
from ._call import Call, Sample
from ._errors import BudgetExceeded, UnknownPrice
from ._flight import Flights, Outcome, Share
from ._front import READING, Front, is_kept
from ._leases import Leases
from ._limits import ScopeStatistics
from ._sending import Sender
from ._timeouts import Deadline
from ._types import Response

_WRITING = ("use", "refresh")

_Flight: TypeAlias = (
    "tuple[str, Callable[[], Awaitable[list[Sample]]], Callable[[], Awaitable[list[Sample] | None]]]"
)


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

    def begin(
        self, call: Call, finished: Callable[[Response | BaseException], object]
    ) -> Callable[[], object]:
        """`run` on the loop for who is called back; what it returns cancels it."""
        if call.cache != "use" or call.request.n > 1 or call.deadline is not None:
            return _loop.begin(self.run(call), finished)

        flight, may_ask = self._flight(call, call.draws)
        # The end of a request is told in the context of whose it was, in which this call asks for nothing.
        context = contextvars.copy_context()
        leave: Callable[[], None]

        def join() -> None:
            nonlocal leave
            leave = self._state_here().flights.join(*flight, ended)

        def ended(share: Share[list[Sample]]) -> None:
            try:
                response: Response | BaseException | None = self._told(call, share, may_ask)
            except BaseException as error:  # told to who waits, whatever it is
                response = error
            try:
                if response is None:
                    context.run(join)
                else:
                    finished(response)
            finally:
                # Its traceback holds this frame.
                del response

        def cancel() -> None:
            leave()
            finished(asyncio.CancelledError())

        join()
        return cancel

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

    def _told(self, call: Call, share: Share[list[Sample]], may_ask: Callable[[], bool]) -> Response | None:
        """The answer of a call whose flight has ended; None if it may have one of its own."""
        try:
            samples = _shared(share())
        except (BudgetExceeded, UnknownPrice):
            if not may_ask():
                raise
            return None
        return self._front.respond(call, samples)

    async def _stream(self, call: Call, emit: Emit) -> Response:
        return self._front.respond(call, await self._ask(call, call.draws, emit))

    async def _fetch(self, call: Call, draws: Sequence[int]) -> list[Sample]:
        """Get samples from the provider, or from an equal call that is asking for them already."""
        if call.cache != "use":
            return await self._ask(call, draws)
        flight, may_ask = self._flight(call, draws)
        while True:
            try:
                return _shared(await self._state_here().flights.run(*flight))
            except (BudgetExceeded, UnknownPrice):
                if not may_ask():
                    raise

    def _flight(self, call: Call, draws: Sequence[int]) -> tuple[_Flight, Callable[[], bool]]:
        """What equal calls share, under which name, and where they look for it.

        Beside it what tells whether the call may ask by itself, once a request was refused for want of money.
        """
        key, mine = call.key(draws[0]), False

        def ask() -> Awaitable[list[Sample]]:
            nonlocal mine
            mine = True
            return self._ask(call, draws)

        def may_ask() -> bool:
            # What another call had no money for, this one may have.
            return not mine and self._state_here().sender.spending(call, len(draws)).affordable()

        name = key if len(draws) == 1 else f"{key}+{len(draws)}"
        return (name, ask, lambda: self._all_stored(call, draws)), may_ask

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
            # Even if it is given up meanwhile: it is paid for, and who waits for the end must find it.
            await write

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


def _shared(outcome: Outcome[list[Sample]]) -> list[Sample]:
    """What a call gets of a flight: only one of those who share a request has paid for it."""
    samples, paid = outcome
    return samples if paid else [replace(sample, cached=True) for sample in samples]


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
