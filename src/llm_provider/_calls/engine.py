"""The way of a call that is not in the cache, on the background loop.

    run: single flight → send (_sending) → store → respond

Everything mutable is in `_LoopState`, so that a new loop, after a fork, starts clean.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Coroutine, Sequence
from dataclasses import replace
from decimal import Decimal

import orjson

from .._cache.response_cache import Entry, now
from .._errors import BudgetExceededError, UnknownPriceError
from .._limits.scopes import ScopeStatistics
from .._limits.timeouts import Deadline
from .._runtime import event_loop
from .._runtime.leases import Leases
from .._types import Response
from .attempt import Emit
from .call import Call, Sample
from .prepare import READING, Front, is_kept
from .sender import Sender
from .single_flight import Flight, Flights, Outcome, Share

_WRITING = ("use", "refresh")

_NO_MONEY = (BudgetExceededError, UnknownPriceError)
"""Why a request that is shared may be refused to one of those who share it, and not to another."""


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
        self._loaded: set[tuple[str, str]] = set()

    def load(self, call: Call) -> None:
        """Import the SDK of a call, for the first of its kind: in a thread that has nothing else to do.

        On the loop's it takes longer, as the C library maps the memory of all but the main thread page by
        page. What goes wrong is told where the call is sent.
        """
        route, transport = call.target.route, self._settings.transport_of(call.target.route)
        if (route.adapter, transport) not in self._loaded:
            with contextlib.suppress(Exception):
                call.adapter.connect(transport)
            self._loaded.add((route.adapter, transport))

    def run(self, call: Call) -> Coroutine[None, None, Response]:
        """Send a call that is not in the cache and return its answer.

        Raises:
            LLMError: it failed; retries, or the time until its deadline, are over.
        """
        return self._run(call) if call.deadline is None else _within(call.deadline, call, self._run(call))

    def begin(self, call: Call, finished: event_loop.Finished[Response]) -> event_loop.Job[Response]:
        """`run` for another thread, which is called back."""
        if call.cache != "use" or call.request.n > 1 or call.deadline is not None:
            return event_loop.Running(self.run(call), finished)
        return _SharedJob(self, call, finished)

    def stream(self, call: Call, emit: Emit) -> Coroutine[None, None, Response]:
        """Like `run`, with the deltas given to `emit` as they arrive."""
        work = self._stream(call, emit)
        return work if call.deadline is None else _within(call.deadline, call, work)

    async def _run(self, call: Call) -> Response:
        fetched = self._fetch(call, call.draws) if call.request.n == 1 else self._several(call)
        return self._front.respond(call, await fetched)

    async def _several(self, call: Call) -> list[Sample]:
        """The samples of a call for several, of which the cache may hold some."""
        samples = await self._stored(call, call.draws) if call.cache in READING else {}
        missing = [draw for draw in call.draws if draw not in samples]
        most = call.encoded.most_samples
        groups = [missing[start : start + most] for start in range(0, len(missing), most)]
        outcomes = await asyncio.gather(
            *(self._fetch(call, group) for group in groups), return_exceptions=True
        )
        for group, outcome in zip(groups, outcomes, strict=True):
            if isinstance(outcome, BaseException):
                raise outcome
            samples.update(zip(group, outcome, strict=True))
        return [samples[draw] for draw in call.draws]

    async def _stream(self, call: Call, emit: Emit) -> Response:
        return self._front.respond(call, await self.ask(call, call.draws, emit))

    def _fetch(self, call: Call, draws: Sequence[int]) -> Coroutine[None, None, list[Sample]]:
        """Get samples from the provider, or from an equal call that is asking for them already."""
        return self._share(call, draws) if call.cache == "use" else self.ask(call, draws)

    async def _share(self, call: Call, draws: Sequence[int]) -> list[Sample]:
        source = _Source(self, call, draws)
        while True:
            try:
                return _share(await self.flights.run(source.name, source))
            except _NO_MONEY:
                if not source.may_ask():
                    raise

    async def _stored(self, call: Call, draws: Sequence[int]) -> dict[int, Sample]:
        """Those samples that the cache holds by now."""
        here, found = asyncio.get_running_loop(), {}
        entries = [self._cache.get_soon(call.key(draw), here) for draw in draws]
        for draw, entry in zip(draws, entries, strict=True):
            sample = self._front.kept(call, await entry)
            if sample is not None:
                found[draw] = sample
        return found

    async def all_stored(self, call: Call, draws: Sequence[int]) -> list[Sample] | None:
        """Samples as the cache holds them by now; None unless it has them all."""
        found = await self._stored(call, draws)
        return list(found.values()) if len(found) == len(draws) else None

    async def ask(self, call: Call, draws: Sequence[int], emit: Emit | None = None) -> list[Sample]:
        """Get samples from the provider and store them before they are handed on."""
        samples: list[Sample] = []
        while len(samples) < len(draws):
            # A server that does not know how to give several gives one, and is asked for the others.
            wanted = draws[len(samples) :]
            answered = await self._state_here().sender.send(call, len(wanted), emit)
            got = [answered] if len(draws) == 1 else _split(call, answered)[: len(wanted)]
            if call.cache in _WRITING:
                await self._store(call, wanted, got)
            samples += got
        return samples

    async def _store(self, call: Call, draws: Sequence[int], samples: Sequence[Sample]) -> None:
        here, created = asyncio.get_running_loop(), now()
        writes = [
            self._cache.put_soon(
                call.key(draw),
                Entry(sample.body, sample.sending, created, sample.answer.model, call.asked(draw)),
                here,
            )
            for draw, sample in zip(draws, samples, strict=False)
            if is_kept(sample.answer, self._settings.kept)
        ]
        for write in writes:
            # Even if it is given up meanwhile: it is paid for, and who waits for the end must find it.
            await write

    @property
    def flights(self) -> Flights[list[Sample]]:
        """What is under way on the running loop."""
        return self._state_here().flights

    def affordable(self, call: Call, samples: int) -> bool:
        """Whether there is money for so many samples of a call."""
        return self._state_here().sender.spending(call, samples).affordable()

    def respond(self, call: Call, samples: list[Sample]) -> Response:
        """The answer of a call."""
        return self._front.respond(call, samples)

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


class _Shared:
    """Samples of a call, for which equal calls may ask too."""

    __slots__ = ()

    _engine: Engine
    _call: Call
    _draws: Sequence[int]

    @property
    def name(self) -> str:
        """Under which they are shared."""
        key = self._call.key(self._draws[0])
        return key if len(self._draws) == 1 else f"{key}+{len(self._draws)}"

    def ask(self) -> Awaitable[list[Sample]]:
        """From the provider."""
        self._mine = True  # type: ignore[misc]  # a slot of both kinds
        return self._engine.ask(self._call, self._draws)

    def stored(self) -> Awaitable[list[Sample] | None]:
        """From the cache."""
        return self._engine.all_stored(self._call, self._draws)

    def may_ask(self) -> bool:
        """Whether the call may ask by itself, once a request was refused for want of money."""
        # What another call had no money for, this one may have.
        return not self._mine and self._engine.affordable(self._call, len(self._draws))


class _Source(_Shared):
    """What a coroutine shares."""

    __slots__ = ("_call", "_draws", "_engine", "_mine")

    def __init__(self, engine: Engine, call: Call, draws: Sequence[int]) -> None:
        self._engine, self._call, self._draws, self._mine = engine, call, draws, False


class _SharedJob(_Shared, event_loop.Job[Response]):
    """A call of one sample that may share it, and is called back.

    All in one object, and no closures: those would know each other, and leave all of a call to the collector.
    """

    __slots__ = ("_call", "_draws", "_engine", "_flight", "_mine")

    def __init__(self, engine: Engine, call: Call, finished: event_loop.Finished[Response]) -> None:
        self._engine, self._call, self._draws, self._mine = engine, call, call.draws, False
        self._flight: Flight[list[Sample]] | None = None
        super().__init__(finished)

    def _begin(self) -> None:
        self._flight = self._engine.flights.join(self.name, self, self._context)

    def ended(self, share: Share[list[Sample]]) -> None:
        """Tell the answer; or begin again, if the call may send a request of its own."""
        self._flight = None
        response: Response | BaseException
        try:
            response = self._engine.respond(self._call, _share(share()))
        except BaseException as error:  # told to who waits, whatever it is
            response = error
        try:
            if isinstance(response, _NO_MONEY) and self.may_ask():
                self._start()
            else:
                self._end(response)
        finally:
            # Its traceback holds this frame.
            del response

    def _give_up(self) -> None:
        if self._flight is not None:
            self._engine.flights.leave(self._flight, self)
        self._end(asyncio.CancelledError())


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


def _share(outcome: Outcome[list[Sample]]) -> list[Sample]:
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
