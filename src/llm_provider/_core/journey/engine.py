"""The lifecycle of a call, from top to bottom.

    prepare → lookup → run: share → deliver → store → result

`prepare` and `lookup` run in the user's thread. `run` runs on the background loop. A script whose answers are
all stored goes no further than `lookup`, and this module loads neither an event loop nor an SDK for it.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from sys import modules
from typing import TYPE_CHECKING, Any, TypeVar

from ..._features.telemetry.logs import is_logging
from ..._features.telemetry.observer import Observer
from ..._features.telemetry.telemetry import SDK
from ..errors import BudgetExceededError, CacheMissError, LLMError, RequestError, UnknownPriceError, cite
from ..events.waits import Waits
from ..formats import registry
from ..money.track import current
from ..pace.call_limits import Concurrency, Deadline, Patience
from ..pace.failures import still_waits
from ..requests.environment_headers import adds_headers, with_headers
from ..runtime import cassette, clock
from ..runtime.canonical_json import canonical
from ..runtime.imports import when_imported
from ..runtime.json_pieces import LARGE, loads, read_large
from ..settings import Settings
from ..store.response_cache import Entry, ResponseCache
from ..types.messages import describe_input
from .call import MAX_REQUEST_BYTES, Call, Emit, Operation, Sample, finish_by, renumber
from .early_stop import is_of_batch
from .observation import observe_call, observe_lookup
from .recorder import CostRecorder
from .sent_requests import SentRequests
from .several_parts import ask_for_missing, describe, note, share_apart, stream_missing

if TYPE_CHECKING:
    import asyncio

    from ..formats.protocol import AnyAnswer
    from ..pace.scopes import ScopeStatistics
    from .loop_state import LoopState

T = TypeVar("T")
V = TypeVar("V")

READING, WRITING = ("use", "only"), ("use", "refresh")
"""The cache modes that look answers up, and those that store them."""

_READS_AT_ONCE = 16
"""Cache entries that an event loop may read before its other tasks run. A thread would take several times as
long for each read, but many reads in a row would block these tasks."""

_EXPLAINED = 20
"""Misses with cache="only" for which a client names the nearest stored entry. This takes about 10 ms each,
and a batch may have thousands of misses."""

_NO_MONEY = (BudgetExceededError, UnknownPriceError)
"""Errors of a budget. The leader of a shared request may get one although a follower's budget has room."""


class Engine:
    """Takes the calls of one client through their lifecycle."""

    def __init__(self, settings: Settings, cache: ResponseCache, recorder: CostRecorder) -> None:
        self.settings = settings
        self.cache = cache
        self.recorder = recorder
        self.closed = False
        """Whether the client is closed. A closed client makes no calls."""
        self._state: LoopState | None = None
        self.waits = Waits(show=settings.show_waits)
        self.observer = Observer(settings.telemetry, content=settings.log_content, statistics=self.statistics)
        self._loaded: set[tuple[str, str]] = set()
        # Weak keys: if a loop ends within an iteration, its count is removed with it.
        self._reads: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, int] = weakref.WeakKeyDictionary()
        self._remote: bool | None = None
        self._adds_headers = adds_headers()
        self._explained = 0

    # --- in the user's thread ----------------------------------------------------------------------------

    def prepare(self, operation: Operation[Any, T], request: Any, concurrency: Concurrency) -> Call[T]:
        """Route and encode a request; `RequestError` if it cannot be served, `RuntimeError` after `close`."""
        started = clock.perf_counter()
        if self.closed:
            self.refuse_closed()
        settings = self.settings
        target = settings.find_target(request.model, request.base_url)
        request = with_headers(request, target) if self._adds_headers else request
        adapter = registry.load(target.route.adapter)
        encoded = operation.encode(request, target, adapter)
        try:
            body = canonical(encoded.payload)
        except RequestError:
            body = b""
        if not body:
            # Outside the handler, so that an error has no other one as its context.
            if hasattr(request, "mend_answers"):
                request = request.mend_answers()
                encoded = operation.encode(request, target, adapter)
            body = canonical(encoded.payload)
        if len(body) > MAX_REQUEST_BYTES:
            size = f"{len(body) / 1e6:.1f} MB, and the limit is {MAX_REQUEST_BYTES / 1e6:.0f} MB"
            problem = f"the request has {size}: pass large files as URLs"
            raise RequestError(problem, provider=target.provider, model=request.model)
        patience = settings.outage_patience if request.outage_patience is None else request.outage_patience
        cache = request.cache or self.settings.cache
        call = Call(
            operation=operation,
            exchange=operation,
            request=request,
            target=target,
            adapter=adapter,
            encoded=encoded,
            body=body,
            parts=operation.parts(request),
            started=started,
            concurrency=concurrency,
            cache=cassette.modes.get(cache, cache),
            tracks=current(),
            patience=Patience(operation.patience if patience is None else patience, clock.monotonic()),
        )
        if self.observer.is_on or is_logging(20) or (SDK in modules and self.observer.find_providers()):
            call.watch = self.observer.idle
        if request.deadline is not None:
            call.deadline = Deadline(request.deadline, started + request.deadline)
        if request.options and request.options.get("fallback"):
            from ..._features.fallback.fallback import prepare_each

            call.fallback = prepare_each(self, call)
        return call

    def refuse_closed(self) -> None:
        if self.closed:
            raise RuntimeError("this client is closed")

    def lookup(self, call: Call[T]) -> T | None:
        """The result of a call from the cache; None if a part of it is not stored, or an error if it must be.

        In a thread that runs an event loop, a second level of the cache is left to `run`.
        """
        if call.cache not in READING:
            return None
        if call.fallback:
            from ..._features.fallback.fallback import look_up

            return look_up(self, call)
        if len(call.parts) == 1:
            part = call.parts[0]
            key = call.key(part)
            result = self.answer_from(call, self.cache.get(key), call.started, key)
            if result is None and call.cache == "only" and not self.cache.has_second_level:
                raise self.missing(call, part)
            return result
        samples = []
        keys = [call.key(part) for part in call.parts] if self.cache.has_second_level else []
        ahead = self.cache.read_ahead(keys) if keys else {}
        for part in call.parts:
            key = call.key(part)
            sample = self.sample(call, self.cache.get_here(key, ahead.get(key)), key)
            if sample is None:
                if call.cache == "only" and not self.cache.has_second_level:
                    raise self.missing(call, part)
                return None
            samples.append(sample)
        return observe_lookup(call, call.started, self.result(call, samples))

    async def lookup_soon(self, call: Call[T]) -> T | None:
        """`lookup` for an event loop, which must not wait long for the disk."""
        if call.cache not in READING:
            return None
        import asyncio

        try:
            asyncio.get_running_loop()
        except RuntimeError:
            from ..runtime.event_loop import running_loop

            running_loop()  # says what to write
        if self._remote is None:
            self._remote = self.cache.lease_directory is None
        if self._remote:
            # On a network file system each read may take a message to another machine.
            return await asyncio.to_thread(self.lookup, call)
        here = asyncio.get_running_loop()
        while (reads := self._reads.get(here, 0)) >= _READS_AT_ONCE:  # noqa: ASYNC110  # one iteration
            await asyncio.sleep(0)
        self._reads[here] = reads = reads + len(call.parts)
        if reads >= _READS_AT_ONCE:
            here.call_soon(self._reads.pop, here, None)
        result = self.lookup(call)
        if result is not None:
            # A loop that only has hits would never let other tasks run.
            await asyncio.sleep(0)
        return result

    def answer_from(self, call: Call[T], entry: Entry | None, started: float, key: str) -> T | None:
        """The result of a call of one part from its cache entry; None if the entry cannot be served.

        `call` may be one that differs in its prompt, and so in its `key`. `started` is the monotonic time at
        which the user made it. A strict call raises `ModelDriftError` if another model answered than before.
        """
        if entry is None or (answer := self.decode_entry(call, entry, key)) is None:
            return None
        change = self.recorder.hit(call, answer)
        if change is not None:
            self.recorder.check_model(call, Sample(answer, entry.body, cached=True, change=change))
        result = call.operation.restore(call, entry, answer, started)
        return result if call.watch is None else observe_lookup(call, started, result)

    def decode_entry(self, call: Call[Any], entry: Entry, key: str | None = None) -> AnyAnswer | None:
        """The answer in the cache entry of a key, if it can be served."""
        try:
            if len(entry.body) < LARGE:
                answer = call.operation.decode(call, loads(entry.body), 1)
            else:
                answer = read_large(lambda: call.operation.decode(call, loads(entry.body), 1))
        except (LLMError, ValueError):
            # The entry was written by another version, whose decoder accepted other replies.
            return None
        answer.origin, answer.key = entry.origin, key
        kept = call.operation.is_kept(answer, self.settings.kept)
        if kept and call.encoded.structure is not None:
            # Another type of the same schema may have accepted it, or a version that did not check.
            from .repair import mismatch

            kept = mismatch(call, answer) is None
        return answer if kept else None

    def missing(self, call: Call[Any], part: int) -> CacheMissError:
        """The error of a call with cache="only" for a part that is not stored."""
        key = call.key(part)
        message = f"no answer is stored under {key}, and cache='only' sends nothing"
        if cassette.replayed is not None:
            question = describe_input(call.request) or call.build_question(part).body.decode()
            answer = f"answer of {call.request.model} to {cite(question)} (key {key})"
            message = f"{cassette.replayed} has no {answer}, and a replay sends nothing"
        if self.cache.peek(key) is not None:
            message = f"the answer under {key} is not used: it is cut, refused or not of response_format"
        elif self._explained < _EXPLAINED:
            self._explained += 1
            with contextlib.suppress(OSError):
                nearest = self.cache.explain_miss(call.build_question(part))
                if nearest is not None:
                    message += f"; {nearest}"
        error = CacheMissError(message, key=key, provider=call.target.provider, model=call.request.model)
        return observe_lookup(call, call.started, error)

    def load(self, call: Call[Any]) -> None:
        """Import the SDK of a call in the user's thread, which waits for the call anyway.

        An import on the loop's thread takes longer, because the C library maps memory page by page in every
        thread but the main one. A failure is reported when the call is sent.
        """
        route, transport = call.target.route, self.settings.transport_of(call.target.route)
        if (route.adapter, transport) not in self._loaded:
            with contextlib.suppress(Exception):
                when_imported(lambda: registry.load_connection(route.adapter).connect(transport))
            self._loaded.add((route.adapter, transport))

    # --- on the background loop --------------------------------------------------------------------------

    def run(self, call: Call[T], emit: Emit | None = None) -> Coroutine[Any, Any, T]:
        """Send a call that is not in the cache and return its result. Only `cancel` may cancel its task.

        `emit` gets the deltas of a stream as they arrive; None for a call that is not streamed.
        """
        if call.fallback:
            from ..._features.fallback.fallback import ask_in_turn

            return ask_in_turn(self, call, emit)
        return self.begin(call, self._run if emit is None else partial(self._run, emit=emit))

    def begin(
        self, call: Call[Any], work: Callable[[Call[Any]], Coroutine[Any, Any, V]]
    ) -> Coroutine[Any, Any, V]:
        """Work for a call that is sent, with its observer and its deadline."""
        call.sent = SentRequests()
        if call.watch is None:
            return self._by_deadline(call, work)
        return observe_call(call, lambda: self._by_deadline(call, work))

    def _by_deadline(
        self, call: Call[Any], work: Callable[[Call[Any]], Coroutine[Any, Any, V]]
    ) -> Coroutine[Any, Any, V]:
        return work(call) if call.deadline is None else finish_by(call.deadline, call, work, self.cancel)

    def cancel(self, task: asyncio.Task[Any]) -> None:
        """Cancel a task that runs calls. A request that other calls share continues for them."""
        self.here().flights.cancel(task)

    async def _run(self, call: Call[T], emit: Emit | None = None) -> T:
        parts = call.parts
        is_one = len(parts) == 1
        try:
            if is_one and emit is None:
                samples = await self.ask(call, parts)
            elif emit is None:
                samples = await ask_for_missing(call, await self.find_parts(call), self.ask, self.cancel)
            elif is_one and not self.cache.has_second_level and call.passed_over is None:
                samples = await self.deliver(call, parts, emit)
            else:
                stored = await self.find_parts(call)
                if call.cache == "only" and len(stored) < len(parts):
                    raise self.missing(call, next(part for part in parts if part not in stored))
                samples = await stream_missing(call, stored, emit, self.deliver, self.cancel)
            return self.result(call, samples)
        except LLMError as error:
            describe(call, error)
            raise

    def ask(self, call: Call[Any], parts: Sequence[int]) -> Coroutine[Any, Any, list[Sample]]:
        """Get a group of parts that one request can ask for."""
        if call.cache == "use":
            return self._share(call, parts, may_be_stored=call.passed_over is not None)
        return self.deliver(call, parts) if call.cache != "only" else self._only_stored(call, parts)

    async def _only_stored(self, call: Call[Any], parts: Sequence[int]) -> list[Sample]:
        """Get parts from the cache's second level without sending; `CacheMissError` if one is not stored."""
        samples = await self.all_stored(call, parts)
        if samples is None:
            raise self.missing(call, parts[0])
        return samples

    async def _share(
        self, call: Call[Any], parts: Sequence[int], *, may_be_stored: bool = False
    ) -> list[Sample]:
        """Get parts from equal calls under way, in this process or another, else deliver them."""
        state, keys = self.here(), list(map(call.key, parts))
        while (flight := state.flights.under_way(keys)) is not None:
            followed = [part for part, key in zip(parts, keys, strict=True) if key in flight.keys]
            if len(followed) < len(parts):
                share = partial(self._share, may_be_stored=True)
                return await share_apart(call, parts, followed, share, self.cancel)
            try:
                shared, paid = await flight.follow(call.sent)
            except _NO_MONEY:
                # The budgets of this call may have room where those of the leader had none.
                if not state.sender.affordable(call, parts):
                    raise
            except LLMError as error:
                # The leader's batch may have been stopped, or its time or its patience may be over.
                waits = still_waits(error, call.patience, clock.monotonic())
                if not (waits or flight.is_too_late or is_of_batch(error)):
                    raise
            else:
                samples = [shared[key] for key in keys]
                for sample in samples if call.encoded.structure else ():
                    from .repair import find_mismatch

                    if await find_mismatch(call, sample.answer):
                        # The leader's type has the same schema, and accepts more.
                        return await self.deliver(call, parts)
                return samples if paid else [sample.share() for sample in samples]
        with state.flights.lead(keys, call.sent) as flight:
            if flight.elsewhere:
                may_be_stored = True
                await flight.wait_for_other_processes()
            looks = may_be_stored or self.cache.has_second_level
            answers = await self.find_samples(call, parts) if looks else {}
            missing = [part for part in parts if part not in answers]
            if missing:
                flight.take_leases()
                if self.cache.leases:
                    from .single_flight import deliver_once

                    delivered = await deliver_once(self.cache, call, missing, self.all_stored, self.deliver)
                else:
                    delivered = await self.deliver(call, missing)
                answers.update(zip(missing, delivered, strict=False))
            flight.result = {key: answers[part] for key, part in zip(keys, parts, strict=True)}
        return [answers[part] for part in parts]

    async def deliver(
        self, call: Call[Any], parts: Sequence[int], emit: Emit | None = None, numbers: Sequence[int] = ()
    ) -> list[Sample]:
        """Get parts from the provider, and store them. `numbers` are those of a stream's deltas."""
        samples: list[Sample] = []
        while len(samples) < len(parts):
            # A server that ignores the number of samples returns one. The others are requested again.
            wanted = parts[len(samples) :]
            emit_wanted = emit
            if numbers and emit is not None:
                emit_wanted = renumber(emit, numbers[len(samples) :])
            answered = await call.operation.fetch(call, wanted, emit_wanted, self)
            if len(answered.body) < LARGE:
                got = call.operation.split(call, answered, wanted)
            else:
                read = partial(call.operation.split, call, answered, wanted)
                got = await call.run_off_loop(read, answered.body)
            if call.encoded.structure is not None:
                from .repair import keep_matching

                again = self if emit is None else None
                got = await keep_matching(call, wanted, got, again, self._accept, self.cancel)
            else:
                await self._accept(call, wanted, got)
            samples += got
        return samples

    async def _accept(self, call: Call[Any], parts: Sequence[int], samples: Sequence[Sample]) -> None:
        """Note the samples of some parts. Those that are to be kept are on disk when it returns."""
        note(call, parts, samples)
        for write in self.writes(call, parts, samples) if call.cache in WRITING else ():
            # A write also completes if the task is cancelled meanwhile: the answer is paid for.
            await write

    def writes(
        self, call: Call[Any], parts: Sequence[int], samples: Sequence[Sample]
    ) -> list[asyncio.Future[bool]]:
        """Begin to store the samples of some parts that are to be kept."""
        inbox, created, writes = self.here().inbox, clock.time(), []
        for part, sample in zip(parts, samples, strict=False):
            answer = sample.answer
            if call.operation.is_kept(answer, self.settings.kept):
                question, answer.key = call.build_question(part), call.key(part)
                entry = Entry(
                    sample.body, sample.sending, created, answer.model, question, sample.price, answer.origin
                )
                writes.append(self.cache.put_soon(answer.key, entry, inbox))
        return writes

    async def all_stored(self, call: Call[Any], parts: Sequence[int]) -> list[Sample] | None:
        stored = await self.find_samples(call, parts)
        return list(stored.values()) if len(stored) == len(parts) else None

    async def find_parts(self, call: Call[Any]) -> dict[int, Sample]:
        """The parts of a call that are in the cache now, if it may be answered from there."""
        return await self.find_samples(call, call.parts) if call.cache in READING else {}

    async def find_samples(self, call: Call[Any], parts: Sequence[int]) -> dict[int, Sample]:
        """The parts that are in the cache now."""
        inbox, stored = self.here().inbox, {}
        keys = list(map(call.key, parts))
        entries = [self.cache.get_soon(key, inbox) for key in keys]
        for part, key, waiting in zip(parts, keys, entries, strict=True):
            entry = await waiting
            read = partial(self.sample, call, entry, key)
            if entry and (sample := await call.run_off_loop(read, entry.body)):
                stored[part] = sample
        return stored

    # --- the end -----------------------------------------------------------------------------------------

    def sample(self, call: Call[Any], entry: Entry | None, key: str | None = None) -> Sample | None:
        """A part from the cache entry of its key, if it can be served."""
        if entry is None or (answer := self.decode_entry(call, entry, key)) is None:
            return None
        return Sample(answer, entry.body, cached=True, price=entry.price)

    def result(self, call: Call[T], samples: Sequence[Sample]) -> T:
        """Put the parts of a call together and record the hits; a strict call may raise `ModelDriftError`."""
        self.recorder.check_samples(call, samples)
        return call.operation.result(call, samples)

    def statistics(self) -> list[ScopeStatistics]:
        """Every scope in use."""
        return [] if self._state is None else self._state.sender.statistics()

    def here(self) -> LoopState:
        """The state of this client on the loop."""
        if self._state is None:
            from .loop_state import LoopState

            self._state = LoopState(self.settings, self.cache, self.recorder, self.waits)
        return self._state

    def after_fork(self) -> None:
        """In a forked child, begin anew, with connections of its own."""
        if self._state is not None:
            from ..runtime import event_loop

            event_loop.keep_for_parent(self._state)
            self._state = None

    async def close(self) -> None:
        state, self._state = self._state, None
        if state is not None:
            await state.close()
