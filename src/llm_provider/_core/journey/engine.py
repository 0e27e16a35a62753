"""The second half of a call's life, on the background loop, from top to bottom.

    prepare → lookup → run: share → deliver → store → result

A call of several parts, such as samples or texts, asks for them in as few requests as the API allows, all at
the same time. If one request fails, the others are waited for, and their answers are stored and noted. The
error of the call has them as `samples`, and the same call asks again for what failed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import BudgetExceededError, FailedAttempt, LLMError, SchemaMismatchError, UnknownPriceError
from ..events.events import Waits, tell_work
from ..formats.decoded import describe_body
from ..formats.shared.replies import reply_body
from ..pace.call_limits import Deadline
from ..pace.failures import still_waits
from ..runtime import clock
from ..settings import Settings
from ..store.response_cache import Entry, ResponseCache
from .call import Call, Emit, Sample, delta_of_choice, renumber
from .lookup import READING, LookupEngine, build_correction, find_mismatch, is_too_old, mismatch_error
from .recorder import CostRecorder
from .sent_requests import ENOUGH_FAILURES, EarlyStop, SentRequests, is_of_batch

if TYPE_CHECKING:
    import asyncio
    from decimal import Decimal

    from ..pace.scopes import ScopeStatistics
    from ..runtime.event_loop import Inbox
    from .sender import Sender
    from .single_flight import Flights

T = TypeVar("T")
V = TypeVar("V")

WRITING = ("use", "refresh")
"""The cache modes that store answers."""

_NO_MONEY = (BudgetExceededError, UnknownPriceError)
"""Errors of a budget. The leader of a shared request may get one although a follower's budget has room."""

_MOST_REQUESTS = 16
"""Requests for one answer. Gemini's models write up to 65,536 tokens in one and read 1,048,576: after 16
requests nothing fits. Claude has then run its tools 160 times. A server that never ends is asked no more."""

_MOST_REPAIRS = 1
"""Unless the user sets `max_repairs`."""


@dataclass(slots=True)
class LoopState:
    """What a client has on one event loop. The first call that is sent makes it there."""

    inbox: Inbox
    flights: Flights[dict[str, Sample]]
    sender: Sender
    batches: object = None
    """The batch delivery, made by the first job that uses it."""
    remembered: Any = None
    """The memory of an operation of a feature, made by its first call."""
    to_close: list[Callable[[], Awaitable[None]]] = field(default_factory=list)
    """Closes what others made for this loop."""

    async def close(self) -> None:
        self.flights.leases.close()
        await self.sender.close()
        for close in self.to_close:
            await close()


class Engine(LookupEngine):
    """Takes the calls of one client through their life."""

    def __init__(self, settings: Settings, cache: ResponseCache, recorder: CostRecorder) -> None:
        self._state: LoopState | None = None
        self.waits = Waits(show=settings.show_waits)
        super().__init__(settings, cache, recorder)

    def run(self, call: Call[T], emit: Emit | None = None) -> Coroutine[Any, Any, T]:
        """Send a call that is not in the cache and return its result. Only `cancel` may cancel its task.

        `emit` gets the deltas of a stream as they arrive; None for a call that is not streamed.
        """
        if call.relay is not None:
            return call.relay.run(call, emit)
        return self.begin(call, self._run if emit is None else partial(self._run, emit=emit))

    def begin(
        self, call: Call[Any], work: Callable[[Call[Any]], Coroutine[Any, Any, V]]
    ) -> Coroutine[Any, Any, V]:
        """Work for a call that is sent, with its listeners and its deadline."""
        call.sent = SentRequests()
        if self.sdk_of(call) not in self.loaded and call.cache != "only":
            work = partial(self.load_apart, work=work)
        if call.deadline is None and not call.listeners:
            return work(call)
        started = partial(work, call)
        if call.deadline is not None:
            started = partial(self._finish_by, call.deadline, call, work)
        return tell_work(call, started) if call.listeners else started()

    async def _finish_by(
        self, deadline: Deadline, call: Call[Any], work: Callable[[Call[Any]], Coroutine[Any, Any, V]]
    ) -> V:
        """The result of a call's work by its deadline, else an `APITimeoutError`.

        A request that other calls share continues for them.
        """
        import asyncio

        from .reservation import worst_case

        def bound(parts: Sequence[int]) -> Decimal | None:
            return worst_case(call, parts, self.recorder.prices()) if call.exchange.billed else None

        left = deadline.left
        if left > 0:
            # Its coroutine begins here: nothing would await one of a call that is cancelled before.
            task = asyncio.create_task(work(call))
            try:
                await asyncio.wait((task,), timeout=left)
                if task.done():
                    return task.result()
                error = call.sent.deadline_error(deadline, bound)
                call.sent.mark_reported()
            finally:
                # Where it is done, this retrieves its exception: a call that is cancelled does not.
                self.cancel(task)
        else:
            error = call.sent.deadline_error(deadline, bound)
        error.provider, error.model = call.target.provider, call.request.model
        raise error

    def cancel(self, task: asyncio.Task[Any]) -> None:
        """Cancel a task that runs calls. A request that other calls share continues for them."""
        self.loop_state().flights.cancel(task)

    async def _run(self, call: Call[T], emit: Emit | None = None) -> T:
        parts = call.parts
        try:
            if len(parts) == 1 and emit is None:
                samples = await self.ask(call, parts)
            elif len(parts) == 1 and not self.cache.has_second_level and call.passed_over is None:
                samples = await self.deliver(call, parts, emit)
            else:
                samples = await self._ask_for_parts(call, emit)
            return self.result(call, samples)
        except LLMError as error:
            call.describe(error)
            raise

    # --- several parts -----------------------------------------------------------------------------------

    async def _ask_for_parts(self, call: Call[Any], emit: Emit | None) -> list[Sample]:
        """The parts of a call. Those that are stored are emitted whole."""
        answered = await self.find_samples(call, call.parts) if call.cache in READING else {}
        call.answered = answered
        missing = [part for part in call.parts if part not in answered]
        groups = call.operation.groups(call, missing)
        if emit is not None:
            if missing and call.cache == "only":
                raise self.missing(call, missing[0])
            for part, sample in answered.items():
                form = call.request.response_format
                emit([delta_of_choice(sample.answer.choices[0], call.parts.index(part), form)])
        elif len(groups) > ENOUGH_FAILURES and call.early_stop is None:
            # A wrong key fails every group.
            call.early_stop = EarlyStop()
        await self._ask_for_groups(call, groups, emit)
        return [answered[part] for part in call.parts]

    async def _ask_for_groups(
        self, call: Call[Any], groups: Sequence[Sequence[int]], emit: Emit | None
    ) -> None:
        """Get groups of parts, in smaller groups where a request is refused as too large."""

        async def ask_for_group(parts: Sequence[int]) -> None:
            part = call.make_part()
            try:
                if emit is None:
                    samples = await self.ask(part, parts)
                else:
                    samples = await self.deliver(part, parts, emit, list(map(call.parts.index, parts)))
            except LLMError as error:
                smaller = call.operation.smaller_groups(call, parts, error)
                if not smaller:
                    raise
                await self._ask_for_groups(call, smaller, emit)
            else:
                call.note(parts, samples)

        await self.run_side_by_side(list(map(ask_for_group, groups)))

    async def run_side_by_side(self, work: Sequence[Coroutine[Any, Any, V]]) -> list[V]:
        """Run coroutines at the same time. All of them end before the first failure is raised."""
        import asyncio

        tasks = [asyncio.create_task(each) for each in work]
        try:
            await asyncio.gather(*map(asyncio.shield, tasks), return_exceptions=True)
        except asyncio.CancelledError:
            for task in tasks:
                self.cancel(task)
            raise
        return [task.result() for task in tasks]

    # --- share -------------------------------------------------------------------------------------------

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

    async def _share(self, call: Call[Any], parts: Sequence[int], *, may_be_stored: bool) -> list[Sample]:
        """Get parts from equal calls under way, in this process or another, else deliver them."""
        state, keys = self.loop_state(), list(map(call.key, parts))
        while (flight := state.flights.under_way(keys)) is not None:
            followed = [part for part, key in zip(parts, keys, strict=True) if key in flight.keys]
            if len(followed) < len(parts):
                return await self._share_apart(call, parts, followed)
            try:
                shared, paid = await flight.follow(call.sent)
            except _NO_MONEY:
                # The budgets of this call may have room where the budgets of the leader had none.
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
                    if await find_mismatch(call, sample.answer):
                        # The leader's type has the same schema, and accepts more.
                        return await self.deliver(call, parts)
                return samples if paid else [sample.share() for sample in samples]
        with state.flights.lead(keys, call.sent, call.started) as flight:
            if flight.elsewhere:
                may_be_stored = True
                await flight.wait_for_other_processes()
            looks = may_be_stored or self.cache.has_second_level
            answers = await self.find_samples(call, parts) if looks else {}
            missing = [part for part in parts if part not in answers] if answers else parts
            if missing:
                flight.take_leases()
                if self.cache.leases:
                    from .single_flight import deliver_once

                    delivered = await deliver_once(self.cache, call, missing, self.all_stored, self.deliver)
                else:
                    delivered = await self.deliver(call, missing)
                answers.update(zip(missing, delivered, strict=False))
            samples = [answers[part] for part in parts]
            flight.result = dict(zip(keys, samples, strict=True))
        return samples

    async def _share_apart(
        self, call: Call[Any], parts: Sequence[int], followed: Sequence[int]
    ) -> list[Sample]:
        """The parts of a group. Those in `followed` are shared with other calls, the others asked for."""

        async def share_group(group: Sequence[int]) -> None:
            samples = await self._share(call.make_part(), group, may_be_stored=True)
            call.note(group, samples)
            answered.update(zip(group, samples, strict=True))

        answered: dict[int, Sample] = {}
        others = [part for part in parts if part not in followed]
        await self.run_side_by_side([share_group(followed), share_group(others)])
        return [answered[part] for part in parts]

    # --- deliver -----------------------------------------------------------------------------------------

    async def deliver(
        self, call: Call[Any], parts: Sequence[int], emit: Emit | None = None, numbers: Sequence[int] = ()
    ) -> list[Sample]:
        """Get parts from the provider, and store them. `numbers` are the indices of a stream's deltas."""
        samples: list[Sample] = []
        while len(samples) < len(parts):
            # A server that ignores the number of samples returns one. The others are requested again.
            wanted = parts[len(samples) :]
            emit_wanted = emit
            if numbers and emit is not None:
                emit_wanted = renumber(emit, numbers[len(samples) :])
            answered = await self.fetch(call, wanted, emit_wanted)
            got = [answered]
            if len(wanted) > 1:
                split = partial(call.operation.split, call, answered, wanted)
                got = await call.run_off_loop(split, answered.body)
            if call.encoded.structure is None:
                await self._accept(call, wanted, got)
            else:
                got = await self._keep_matching(call, wanted, got, repairs=emit is None)
            samples += got
        return samples

    def fetch(
        self, call: Call[Any], parts: Sequence[int], emit: Emit | None = None
    ) -> Coroutine[Any, Any, Sample]:
        """Get an answer with some parts. A request is enough for most."""
        operation, sender = call.operation, self.loop_state().sender
        if operation.fetch is not None:
            return operation.fetch(call, parts, self)
        if operation.continues and hasattr(call.adapter, "continuation"):
            return self._fetch_whole(call, parts, emit, sender)
        return sender.send(call, parts, emit)

    async def _fetch_whole(
        self, call: Call[Any], parts: Sequence[int], emit: Emit | None, sender: Sender
    ) -> Sample:
        """An answer from as many requests as the provider divides it over. If one fails, the call fails."""
        return await self.finish_answer(call, parts, await sender.send(call, parts, emit), emit)

    def is_divided(self, call: Call[Any], sample: Sample) -> bool:
        """Whether an answer goes on in another request."""
        adapter: Any = call.adapter
        divides = call.operation.continues and hasattr(adapter, "continuation")
        return divides and adapter.continuation(sample.answer.reply, call.encoded) is not None

    async def finish_answer(
        self, call: Call[Any], parts: Sequence[int], whole: Sample, emit: Emit | None = None
    ) -> Sample:
        """An answer with the rest that its provider has divided from it.

        Each request goes on where the one before it ended, and is limited, budgeted and recorded like any
        other. Only the whole is stored.
        """
        # A protocol cannot have functions that only some formats have.
        adapter: Any = call.adapter
        sender, before = self.loop_state().sender, None
        for _ in range(_MOST_REQUESTS - 1):
            token = adapter.continuation(whole.answer.reply, call.encoded)
            if token is None or token == before:  # the next answer would be the same
                break
            answered, before = await sender.send(_continue(call, whole, token), parts, emit), token
            whole = await call.run_off_loop(partial(_join, call, parts, whole, answered), whole.body)
        return whole

    async def _keep_matching(
        self, call: Call[Any], parts: Sequence[int], samples: Sequence[Sample], *, repairs: bool
    ) -> list[Sample]:
        """Samples that match `response_format`. Each is accepted as soon as it does. No other is stored.

        With `repairs`, the model is asked again for those that do not. It reads its answer and what is wrong.
        An answer that then matches is stored under the key of the question. The reader of a stream has seen
        the answer, so its response raises the error when it is parsed.
        """

        async def keep(part: int, sample: Sample) -> Sample:
            problem = await find_mismatch(call, sample.answer)
            if problem is not None:
                if not repairs:
                    return sample
                sample = await self._repair(call, part, sample, problem)
            await self._accept(call, (part,), (sample,))
            return sample

        work = list(map(keep, parts, samples))
        return [await work[0]] if len(work) == 1 else await self.run_side_by_side(work)

    async def _repair(self, call: Call[Any], part: int, sample: Sample, problem: str) -> Sample:
        """A sample that matches, with the price and the times of all requests."""
        most = call.request.max_repairs
        sent, reason = SentRequests(), ""
        call.sent.parts += (sent,)
        correction = replace(call, sent=sent)
        for _ in range(_MOST_REPAIRS if most is None else most):
            name, seconds = SchemaMismatchError.__name__, sample.sending
            sent.failures += (FailedAttempt(error=name, status=200, seconds=seconds, maybe_billed=True),)
            try:
                correction = build_correction(correction, part, sample, problem)
                answered = await self.fetch(correction, (part,))
            except LLMError as error:
                reason = f"; asking again failed: {error}"
                break
            sample = replace(answered, **sample.add_times(answered))
            left = await find_mismatch(call, sample.answer)
            if left is None:
                return sample
            problem = left
        raise mismatch_error(call, sample, problem, reason)

    async def _accept(self, call: Call[Any], parts: Sequence[int], samples: Sequence[Sample]) -> None:
        """Note the samples of some parts. Those that are to be kept are on disk when it returns."""
        if call.answered is not None:
            call.note(parts, samples)
        for write in self.writes(call, parts, samples) if call.cache in WRITING else ():
            # A write also completes if the task is cancelled meanwhile: the answer is paid for.
            await write

    def writes(
        self, call: Call[Any], parts: Sequence[int], samples: Sequence[Sample]
    ) -> list[asyncio.Future[bool]]:
        """Begin to store the samples of some parts that are to be kept."""
        inbox, created, writes = self.loop_state().inbox, clock.time(), []
        for part, sample in zip(parts, samples, strict=False):
            answer = sample.answer
            if call.operation.is_kept(answer, self.settings.kept_reasons):
                question, answer.key = call.build_question(part), call.key(part)
                known = answer.model, question, sample.price, answer.origin
                described = describe_body(sample.body, answer, call.target, call.encoded.payload)
                entry = Entry(sample.body, sample.sending, created, *known, *described)
                writes.append(self.cache.put_soon(answer.key, entry, inbox))
        return writes

    async def all_stored(self, call: Call[Any], parts: Sequence[int]) -> list[Sample] | None:
        stored = await self.find_samples(call, parts)
        return list(stored.values()) if len(stored) == len(parts) else None

    async def find_samples(self, call: Call[Any], parts: Sequence[int]) -> dict[int, Sample]:
        """The parts that are in the cache now."""
        inbox, stored, keys = self.loop_state().inbox, {}, list(map(call.key, parts))
        entries = [self.cache.get_soon(key, inbox) for key in keys]
        for part, key, waiting in zip(parts, keys, entries, strict=True):
            entry = await waiting
            if entry is not None and self.cache.has_second_level and is_too_old(call, entry):
                newer: Any = self.cache
                entry = await newer.get_newer_soon(key, inbox)
            read = partial(self.sample, call, entry, key)
            if entry and (sample := await call.run_off_loop(read, entry.body)):
                stored[part] = sample
        return stored

    # --- the end -----------------------------------------------------------------------------------------

    def statistics(self) -> list[ScopeStatistics]:
        """Every scope in use."""
        return [] if self._state is None else self._state.sender.statistics()

    def loop_state(self) -> LoopState:
        """The state of this client on the loop."""
        if self._state is None:
            from ..runtime.event_loop import inbox_here
            from ..runtime.leases import Leases
            from .sender import Sender
            from .single_flight import Flights

            directory = self.cache.lease_directory
            sender = Sender(self.settings, self.recorder, directory, self.waits)
            self._state = LoopState(inbox_here(), Flights(Leases(directory), self.waits), sender)
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


def _continue(call: Call[Any], whole: Sample, token: dict[str, Any]) -> Call[Any]:
    """The same call with a token, which like a label is sent and is not in the key of the answer.

    A field that is None there is left out.
    """
    encoded = call.encoded
    payload = {name: value for name, value in encoded.payload.items() if name not in token}
    added = {name: value for name, value in token.items() if value is not None}
    labels = {**(encoded.labels or {}), **added}
    continued = replace(encoded, payload=payload, labels=labels, continues=whole.answer.reply)
    return replace(call, encoded=continued)


def _join(call: Call[Any], parts: Sequence[int], before: Sample, after: Sample) -> Sample:
    """An answer and its continuation as one."""
    adapter: Any = call.adapter  # as above
    reply = adapter.join(before.answer.reply, after.answer.reply)
    answer = call.operation.decode(call, reply, len(parts))
    answer.origin = before.answer.origin
    return Sample(
        answer,
        reply_body(reply),
        cached=False,
        first_token=before.first_token or after.first_token,
        change=before.change or after.change,
        **before.add_times(after),
    )
