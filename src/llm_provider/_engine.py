"""The way of a call, stage by stage.

    Request → prepare (route, encode, key) → lookup (cache) → run: slot → send → decode → store → price

`prepare` and `lookup` run in the user's thread and load no SDK; `run` and `stream` run on the background
loop. Everything mutable that the loop uses is in `_LoopState`, so that a new loop, after a fork, starts
clean.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from . import _retry, providers
from ._cache import Entry, ResponseCache, cache_key, now
from ._errors import BadResponse, CacheMiss, LLMError, RateLimited, RequestError, Timeout
from ._json import canonical
from ._keys import APIKey, find_key
from ._limits import Limiter, Scope, ScopeStatistics
from ._pricing import PriceTable, PriceWarning
from ._request import DEFAULT_TIMEOUT, Request
from ._routing import Target, priced_as, resolve
from ._types import Choice, Delta, Response, Timing, Usage
from .providers._adapter import Adapter, Answer, Connection, Outgoing, Wire

Emit = Callable[[Delta], None]

MAX_REQUEST_BYTES = 30_000_000
"""The largest body. Gemini takes 20 MB and Anthropic 32 MB; no model has a context for as much text."""

_TIERS = frozenset({"fast", "flex", "priority", "ultrafast"})
"""Providers' words for the tier that served that are also the variants under which `prices.csv` lists it."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What a client decides once for all its calls."""

    timeout: float
    max_retries: int
    cache: str
    transport: str
    keys: Mapping[str, APIKey]


@dataclass(frozen=True, slots=True)
class Call:
    """A request on its way: where it goes and the exact bytes that will be sent."""

    request: Request
    target: Target
    adapter: Adapter
    wire: Wire
    body: bytes
    started: float
    """Monotonic time at which the user asked."""
    max_concurrent: int

    def key(self, draw: int) -> str:
        """The cache key of one sample."""
        return cache_key(
            provider=self.target.provider,
            base_url=self.target.base_url,
            operation=self.wire.operation,
            body=self.body,
            headers=self.wire.headers,
            draw=draw,
        )


@dataclass(frozen=True, slots=True)
class _Sample:
    """One answered request, or one entry of the cache. Times are seconds."""

    answer: Answer
    body: bytes
    cached: bool
    queue: float = 0.0
    sending: float = 0.0
    attempts: int = 0
    first_token: float | None = None


class _LoopState:
    """What belongs to one background loop: limits and open connections."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
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
        return Call(request, target, adapter, wire, body, started, max_concurrent)

    def lookup(self, call: Call) -> Response | None:
        """The answer from the cache; None if any of its samples is not there.

        Raises:
            CacheMiss: it is not there, and the call may not be sent.
        """
        if self._cache_mode(call) not in _READING:
            return None
        samples = []
        for draw in range(call.wire.samples):
            sample = self._cached(call, self._cache.get(call.key(draw)))
            if sample is None:
                if self._cache_mode(call) == "only":
                    raise _missing(call, draw)
                return None
            samples.append(sample)
        return self._respond(call, samples)

    def _cache_mode(self, call: Call) -> str:
        return call.request.cache or self.settings.cache

    def _cached(self, call: Call, entry: Entry | None) -> _Sample | None:
        if entry is None:
            return None
        try:
            return _Sample(call.adapter.decode(orjson.loads(entry.body)), entry.body, cached=True)
        except (LLMError, ValueError):
            # Written by another version that understood more, or less: ask again.
            return None

    # --- on the background loop ------------------------------------------------------------------------

    async def run(self, call: Call) -> Response:
        """Send a call that is not in the cache and return its answer.

        Raises:
            LLMError: it failed; retries are over.
        """
        if call.wire.samples == 1:
            return self._respond(call, [await self._fetch(call, 0)])
        outcomes = await asyncio.gather(
            *(self._draw(call, draw) for draw in range(call.wire.samples)), return_exceptions=True
        )
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome
        return self._respond(call, [sample for sample in outcomes if isinstance(sample, _Sample)])

    async def stream(self, call: Call, emit: Emit) -> Response:
        """Like `run`, with each delta given to `emit` as it arrives."""
        return self._respond(call, [await self._fetch(call, 0, emit)])

    async def _draw(self, call: Call, draw: int) -> _Sample:
        """One of several samples: some may be in the cache already."""
        if self._cache_mode(call) in _READING:
            sample = self._cached(call, await asyncio.wrap_future(self._cache.get_soon(call.key(draw))))
            if sample is not None:
                return sample
        return await self._fetch(call, draw)

    async def _fetch(self, call: Call, draw: int, emit: Emit | None = None) -> _Sample:
        """Get one sample from the provider and store it before it is handed on."""
        sample = await self._send(call, emit)
        if self._cache_mode(call) in _WRITING and is_storable(sample.answer):
            stored = self._cache.put(call.key(draw), Entry(sample.body, sample.sending, now()))
            # It is paid for: a caller who gives up now does not stop it from being stored.
            await asyncio.shield(asyncio.wrap_future(stored))
        return sample

    async def _send(self, call: Call, emit: Emit | None) -> _Sample:
        """Attempts, one after the other, until one succeeds or there is no point in another.

        A slot is held while a request is under way and never while waiting for the next.
        """
        state, request, target = self._state_here(), call.request, call.target
        try:
            outgoing, connection = self._outgoing(call), self._connection(state, call)
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
            attempt = _Attempt(call, outgoing, emit)
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
        self, scope: Scope, attempt: _Attempt, sent: float, attempts: int, max_retries: int
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

    def _outgoing(self, call: Call) -> Outgoing:
        request, target = call.request, call.target
        key = find_key(
            target.provider,
            target.route.key_variables,
            given=request.api_key,
            configured=self.settings.keys,
            required=target.route.key_required and not target.custom_base_url,
        )
        timeout = request.timeout or self.settings.timeout
        return Outgoing(call.wire, call.body, target, key, timeout)

    def _state_here(self) -> _LoopState:
        loop = asyncio.get_running_loop()
        if self._state is None or self._state.loop is not loop:
            # After a fork the old state is the parent's: kept, so that finalizing it closes nothing there.
            self._abandoned = self._state
            self._state = _LoopState(loop)
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
            for connection in state.connections.values():
                with contextlib.suppress(Exception):  # a connection that cannot be closed is closed enough
                    await connection.close()

    # --- either ----------------------------------------------------------------------------------------

    def _respond(self, call: Call, samples: list[_Sample]) -> Response:
        """Price a call's samples and put them together."""
        answers = [sample.answer for sample in samples]
        choices: tuple[Choice, ...] = sum((answer.choices for answer in answers), ())
        usage = sum((answer.usage for answer in answers if answer.usage), Usage())
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

    def _cost(self, call: Call, samples: list[_Sample]) -> float | None:
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


def _missing(call: Call, draw: int) -> CacheMiss:
    key = call.key(draw)
    return CacheMiss(
        f"no answer is stored under {key}, and cache='only' sends nothing",
        key=key,
        provider=call.target.provider,
        model=call.request.model,
    )


def _tier(wire: Wire, answer: Answer) -> str:
    """The variant at which the price table bills a call: the tier that served, else the one asked for."""
    asked = wire.payload.get("service_tier") or wire.payload.get("serviceTier")
    tier = answer.service_tier or asked
    return tier if isinstance(tier, str) and tier in _TIERS else "standard"


class _Attempt:
    """One request and what became of it: an answer, or an error of ours."""

    def __init__(self, call: Call, outgoing: Outgoing, emit: Emit | None) -> None:
        self._call = call
        self._outgoing = outgoing
        self._emit = emit
        self.error: LLMError | None = None
        self.first_token: float | None = None
        self._answer: Answer | None = None
        self._body = b""
        self._sent = 0.0
        self._seconds = 0.0

    async def make(self, connection: Connection) -> None:
        """Send, receive and decode within the timeout; only cancellation raises."""
        timeout = self._outgoing.timeout
        self._sent = time.perf_counter()
        deadline = asyncio.timeout(timeout)
        try:
            async with deadline:
                if self._emit is None:
                    self._body = await connection.send(self._outgoing)
                else:
                    self._body = await self._receive(connection, self._emit)
            self._answer = self._call.adapter.decode(_parsed(self._body))
        except LLMError as error:
            self.error = error
        except Exception as error:
            if deadline.expired():
                self.error = Timeout(f"no complete answer within {timeout:g} s")
            else:
                self.error = self._call.adapter.map_error(error)
        finally:
            self._seconds = time.perf_counter() - self._sent

    async def _receive(self, connection: Connection, emit: Emit) -> bytes:
        assembler = self._call.adapter.Assembler()
        async with contextlib.aclosing(connection.stream(self._outgoing)) as events:
            async for event in events:
                delta = assembler.feed(event)
                if delta:
                    if self.first_token is None:
                        self.first_token = time.perf_counter() - self._sent
                    emit(delta)
        return orjson.dumps(assembler.reply())

    def sample(self, queue: float, attempts: int) -> _Sample:
        """The answer of a successful attempt."""
        assert self._answer is not None
        return _Sample(
            self._answer,
            self._body,
            cached=False,
            queue=queue,
            sending=self._seconds,
            attempts=attempts,
            first_token=self.first_token,
        )


def _parsed(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except ValueError:
        shown = body[:60].decode("utf-8", "replace")
        raise BadResponse(f"the answer is not JSON: {shown!r}" if body else "the answer is empty") from None


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


def is_storable(answer: Answer) -> bool:
    """Whether the cache keeps an answer: every sample ended by itself and says or calls something.

    Not kept: refusals, filtered, empty and length-truncated answers. Asking again may do better.
    """
    return all(
        choice.finish_reason in ("stop", "tool_calls") and (choice.text or choice.tool_calls)
        for choice in answer.choices
    )


__all__ = ["DEFAULT_TIMEOUT", "Call", "Emit", "Engine", "Settings", "is_storable"]
