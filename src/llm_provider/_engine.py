"""The way of a call, stage by stage.

    Request → prepare (route, encode) → lookup (key, cache)
            → run: single flight → slot → send → decode → store → price

`prepare` and `lookup` run in the user's thread and load no SDK; `run` and `stream` run on the background
loop. Everything mutable that the loop uses is in `_LoopState`, so that a new loop, after a fork, starts
clean.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import orjson

from . import _retry, providers
from ._attempt import Attempt, Emit
from ._cache import Entry, ResponseCache, now
from ._call import Call, Sample
from ._errors import CacheMiss, LLMError, RateLimited, RequestError
from ._flight import Flights
from ._json import canonical
from ._keys import APIKey, find_key
from ._leases import Leases
from ._limits import Limiter, Scope, ScopeStatistics
from ._pricing import PriceTable, PriceWarning
from ._request import Request
from ._routing import priced_as, resolve
from ._types import Choice, FinishReason, Response, Timing, Usage
from .providers._adapter import Answer, Connection, Outgoing, Wire

MAX_REQUEST_BYTES = 30_000_000
"""The largest body. Gemini takes 20 MB and Anthropic 32 MB; no model has a context for as much text."""

KEPT_BY_DEFAULT: tuple[FinishReason, ...] = ("stop", "tool_calls")
"""The finish reasons of answers that the cache keeps and serves unless a client says otherwise."""

_TIERS = frozenset({"fast", "flex", "priority", "ultrafast"})
"""Providers' words for the tier that served that are also the variants under which `prices.csv` lists it."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What a client decides once for all its calls."""

    timeout: float
    max_retries: int
    cache: str
    kept: frozenset[str]
    """Finish reasons of the answers that the cache keeps; "empty" for those that say and call nothing."""
    transport: str
    keys: Mapping[str, APIKey]


class _LoopState:
    """What belongs to one background loop: flights, limits and open connections."""

    def __init__(self, loop: asyncio.AbstractEventLoop, leases: Leases) -> None:
        self.loop = loop
        self.flights: Flights[list[Sample]] = Flights(leases)
        self.limiter = Limiter()
        self.connections: dict[str, Connection] = {}
        # Imported with the first request: a script that only reads its cache needs none of it.
        import random

        self.random = random.Random()


_READING = ("use", "only")
_WRITING = ("use", "refresh")


class Engine:
    """Takes calls the whole way; one per client."""

    def __init__(self, settings: Settings, cache: ResponseCache, prices: Callable[[], PriceTable]) -> None:
        self.settings = settings
        self._cache = cache
        self._prices = prices
        self._state: _LoopState | None = None

    # --- in the user's thread --------------------------------------------------------------------------

    def prepare(self, request: Request, max_concurrent: int) -> Call:
        """Route and encode a request, of which at most `max_concurrent` may be under way.

        Raises:
            RequestError: it cannot be served as it is.
        """
        started = time.perf_counter()
        target = resolve(request.model, request.base_url)
        adapter = providers.load(target.route.adapter)
        wire = adapter.encode(request, target)
        body = canonical(wire.payload)
        if len(body) > MAX_REQUEST_BYTES:
            raise RequestError(
                f"the request has {len(body) / 1e6:.1f} MB, and at most {MAX_REQUEST_BYTES / 1e6:.0f} MB "
                "are sent: give large files by their address",
                provider=target.provider,
                model=request.model,
            )
        mode = request.cache or self.settings.cache
        return Call(request, target, adapter, wire, body, started, max_concurrent, mode)

    def lookup(self, call: Call) -> Response | None:
        """The answer from the cache; None if any of its samples is not there.

        Raises:
            CacheMiss: it is not there, and the call may not be sent.
        """
        if call.cache not in _READING:
            return None
        found = []
        for draw in call.draws:
            sample = self._kept(call, self._cache.get(call.key(draw)))
            if sample is None:
                if call.cache == "only":
                    raise self._missing(call, draw)
                return None
            found.append(sample)
        return self._respond(call, found)

    async def lookup_soon(self, call: Call) -> Response | None:
        """`lookup` for an event loop, which must not wait for the disk."""
        if call.cache not in _READING:
            return None
        here = asyncio.get_running_loop()
        entries = [self._cache.get_soon(call.key(draw), here) for draw in call.draws]
        found = []
        for draw, entry in zip(call.draws, entries, strict=True):
            sample = self._kept(call, await entry)
            if sample is None:
                if call.cache == "only":
                    raise self._missing(call, draw)
                return None
            found.append(sample)
        return self._respond(call, found)

    def _missing(self, call: Call, draw: int) -> CacheMiss:
        key = call.key(draw)
        message = f"no answer is stored under {key}, and cache='only' sends nothing"
        with contextlib.suppress(OSError):
            nearest = self._cache.explain_miss(call.asked(draw))
            if nearest is not None:
                message += f"; {nearest}"
        return CacheMiss(message, key=key, provider=call.target.provider, model=call.request.model)

    def _kept(self, call: Call, entry: Entry | None) -> Sample | None:
        """A stored answer, if it can be served."""
        if entry is None:
            return None
        try:
            answer = call.adapter.decode(orjson.loads(entry.body))
        except (LLMError, ValueError):
            # Written by another version that understood more, or less: ask again.
            return None
        return Sample(answer, entry.body, cached=True) if is_kept(answer, self.settings.kept) else None

    # --- on the background loop ------------------------------------------------------------------------

    async def run(self, call: Call) -> Response:
        """Send a call that is not in the cache and return its answer.

        Raises:
            LLMError: it failed; retries are over.
        """
        if call.request.n == 1:
            return self._respond(call, await self._fetch(call, call.draws))
        samples: dict[int, Sample] = {}
        if call.cache in _READING:
            here = asyncio.get_running_loop()
            entries = [self._cache.get_soon(call.key(draw), here) for draw in call.draws]
            for draw, entry in zip(call.draws, entries, strict=True):
                sample = self._kept(call, await entry)
                if sample is not None:
                    samples[draw] = sample
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
        return self._respond(call, [samples[draw] for draw in call.draws])

    async def stream(self, call: Call, emit: Emit) -> Response:
        """Like `run`, with the deltas given to `emit` as they arrive."""
        return self._respond(call, await self._ask(call, call.draws, emit))

    async def _fetch(self, call: Call, draws: Sequence[int]) -> list[Sample]:
        """Get samples from the provider, or from an equal call that is asking for them already."""
        if call.cache != "use":
            return await self._ask(call, draws)
        key = call.key(draws[0])
        samples, paid = await self._state_here().flights.run(
            key if len(draws) == 1 else f"{key}+{len(draws)}",
            lambda: self._ask(call, draws),
            lambda: self._stored(call, draws),
        )
        return samples if paid else [replace(sample, cached=True) for sample in samples]

    async def _stored(self, call: Call, draws: Sequence[int]) -> list[Sample] | None:
        here = asyncio.get_running_loop()
        found = []
        for draw in draws:
            sample = self._kept(call, await self._cache.get_soon(call.key(draw), here))
            if sample is None:
                return None
            found.append(sample)
        return found

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
            if is_kept(sample.answer, self.settings.kept)
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
        try:
            outgoing, connection = self._outgoing(call, samples), self._connection(state, call)
        except LLMError as error:
            error.provider, error.model = target.provider, request.model
            raise
        scope = state.limiter.scope(target.provider, target.base_url, target.model, outgoing.key.identity)
        max_retries = self.settings.max_retries if request.max_retries is None else request.max_retries
        queue, attempts = 0.0, 0
        while True:
            asked = time.perf_counter()
            await scope.acquire(call.max_concurrent, first=attempts > 0)
            queue += time.perf_counter() - asked
            attempts += 1
            attempt = Attempt(call, outgoing, emit)
            sent = state.loop.time()
            try:
                await attempt.make(connection)
                delay = self._settle(scope, attempt, sent, attempts, max_retries)
            finally:
                scope.release()
            if attempt.error is None:
                return attempt.sample(queue, attempts)
            if delay is None:
                raise _explained(attempt.error, call, outgoing.key, attempts)
            queue += delay
            await asyncio.sleep(delay)

    def _settle(
        self, scope: Scope, attempt: Attempt, sent: float, attempts: int, max_retries: int
    ) -> float | None:
        """Tell the scope how an attempt ended; seconds until the next one, None if there is none."""
        error = attempt.error
        if error is None:
            scope.window.succeeded()
            return 0.0
        verdict = _retry.judge(
            error, attempts=attempts, max_retries=max_retries, random_source=self._state_here().random
        )
        delay = verdict.delay
        if _retry.is_congestion(error):
            scope.congested(sent=sent, delay=delay)
            # The scope's gate now holds back everyone, this call included.
            delay = 0.0
        # What the user has seen of a stream cannot be taken back, so it is not begun again.
        return delay if verdict.retry and attempt.first_token is None else None

    def _outgoing(self, call: Call, samples: int) -> Outgoing:
        request, target = call.request, call.target
        key = find_key(
            target.provider,
            target.route.key_variables,
            given=request.api_key,
            configured=self.settings.keys,
            required=target.route.key_required and not target.custom_base_url,
        )
        timeout = request.timeout or self.settings.timeout
        return Outgoing(call.wire, call.body_for(samples), target, key, timeout)

    def _state_here(self) -> _LoopState:
        loop = asyncio.get_running_loop()
        if self._state is None or self._state.loop is not loop:
            # After a fork the old state is the parent's: kept, so that finalizing it closes nothing there.
            self._abandoned = self._state
            self._state = _LoopState(loop, Leases(self._cache.directory / "leases"))
        return self._state

    def _connection(self, state: _LoopState, call: Call) -> Connection:
        name = call.target.route.adapter
        connection = state.connections.get(name)
        if connection is None:
            connection = state.connections[name] = call.adapter.connect(self.settings.transport)
        return connection

    def statistics(self) -> list[ScopeStatistics]:
        """Every scope in use."""
        return self._state.limiter.statistics() if self._state else []

    async def close(self) -> None:
        """Close every connection."""
        state, self._state = self._state, None
        if state is not None:
            state.flights.close()
            for connection in state.connections.values():
                with contextlib.suppress(Exception):  # a connection that cannot be closed is closed enough
                    await connection.close()

    # --- either ----------------------------------------------------------------------------------------

    def _respond(self, call: Call, samples: list[Sample]) -> Response:
        """Price a call's samples and put them together."""
        answers = [sample.answer for sample in samples]
        choices: tuple[Choice, ...] = sum((answer.choices for answer in answers[1:]), answers[0].choices)
        usage = sum((answer.usage for answer in answers[1:] if answer.usage), answers[0].usage or Usage())
        total = time.perf_counter() - call.started
        # Samples run side by side: what the call waited for is the slowest of them.
        slowest = max(samples, key=lambda sample: sample.queue + sample.sending)
        bodies = [sample.body for sample in samples]
        return Response(
            choices=choices,
            usage=usage,
            model=answers[0].model or call.target.model,
            provider=call.target.provider,
            id=answers[0].id,
            cost=self._cost(call, samples),
            cached=all(sample.cached for sample in samples),
            timing=Timing(
                queue=slowest.queue,
                first_token=slowest.first_token,
                total=total,
                attempts=sum(sample.attempts for sample in samples),
                overhead=max(0.0, total - slowest.queue - slowest.sending),
            ),
            body=bodies[0] if len(bodies) == 1 else b"[" + b",".join(bodies) + b"]",
            response_format=call.request.response_format,
        )

    def _cost(self, call: Call, samples: list[Sample]) -> float | None:
        from decimal import Decimal

        total = Decimal(0)
        for sample in samples:
            if sample.cached:
                continue
            cost = None
            if sample.answer.usage is not None:
                variant = _tier(call.wire, sample.answer)
                # Where warnings are made errors, the answer is paid for all the same.
                with contextlib.suppress(PriceWarning):
                    cost = self._prices().cost(*priced_as(call.target), sample.answer.usage, variant=variant)
            if cost is None:
                return None
            total += cost
        return float(total)


def _tier(wire: Wire, answer: Answer) -> str:
    """The variant at which the price table bills a call: the tier that served, else the one asked for."""
    asked = wire.payload.get("service_tier") or wire.payload.get("serviceTier")
    tier = answer.service_tier or asked
    return tier if isinstance(tier, str) and tier in _TIERS else "standard"


def _split(call: Call, answered: Sample) -> list[Sample]:
    """The samples of one request, each as it will be stored."""
    replies = call.adapter.split(orjson.loads(answered.body))
    return [
        replace(
            answered,
            answer=call.adapter.decode(reply),
            body=orjson.dumps(reply),
            attempts=0 if place else answered.attempts,
        )
        for place, reply in enumerate(replies)
    ]


def _explained(error: LLMError, call: Call, key: APIKey, attempts: int) -> LLMError:
    """The error as the user sees it: with the call's facts, without the key and the SDK's objects."""
    error.provider = call.target.provider
    error.model = call.request.model
    error.attempts = attempts
    error.message = key.scrub(error.message)
    if (
        isinstance(error, RateLimited)
        and error.retry_after
        and error.retry_after > _retry.LONGEST_RETRY_AFTER
    ):
        error.message += f" (asked to wait {error.retry_after:.0f} s, which is too long to wait for)"
    error.args = (error.message,)
    error.__cause__ = error.__context__ = error.__traceback__ = None
    return error


def is_kept(answer: Answer, kept: Collection[str]) -> bool:
    """Whether the cache keeps an answer, and serves it.

    Args:
        answer: The answer.
        kept: The finish reasons that every sample of it must have; with "empty", samples that say and call
            nothing are kept too.

    By default refusals, filtered, empty and length-truncated answers are not: asking again may do better.
    """
    return all(
        choice.finish_reason in kept and (choice.text or choice.tool_calls or "empty" in kept)
        for choice in answer.choices
    )
