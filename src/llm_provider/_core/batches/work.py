"""The inputs of one model on their way through a provider's batch API, and live calls that look for it."""

import asyncio
import sys
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from .. import errors
from ..journey.call import Call
from ..journey.engine import Engine
from ..journey.lookup import READING
from ..journey.sent_requests import EarlyStop
from ..requests.checks import DeliveryOptions
from ..runtime import event_loop
from .delivery import BatchDelivery
from .job import Job, RowEnd
from .journal import Record
from .lookup import Lookup
from .worker_pool import END, Finished, StoredAnswers

_BEFORE_ANYTHING = (errors.BudgetExceededError, errors.UncertainBatchError, errors.UnknownPriceError)
"""The errors of a job that are raised, unless a batch was submitted: the user has to decide first."""

_ROWS_AT_ONCE = 1000
"""Rows that are looked up in a second level of the cache together."""


class BatchWork:
    """One job: how its inputs are looked up, submitted and delivered."""

    max_in_flight = sys.maxsize
    sends_as_whole = True

    def __init__(
        self, engine: Engine, lookup: Lookup, stored: StoredAnswers, delivery: DeliveryOptions
    ) -> None:
        self.lookup, self.stored = lookup, stored
        self.job: Job | None = None
        """None until an input is not stored."""
        # No call knows it: live calls for rows that failed are not stopped.
        self.early_stop = EarlyStop()
        self._engine = engine
        self._delivery = delivery
        self._future: Future[None] | None = None
        self._deliver: Callable[[Finished], object] = lambda _: None

    def open(
        self, call: Call[Any], deliver: Callable[[Finished], object], *, is_list: bool, waits: bool
    ) -> None:
        """Note who takes the results, and import the SDK in a thread that waits for the batch anyway."""
        if waits:
            self._engine.load(call)
        self._deliver = deliver

    def give(self, index: int, call: Call[Any]) -> None:
        self.add(index, call, lambda position, result: self._deliver([(position, result)]))

    def flush(self) -> None:
        """Submit the job, now that all inputs are read."""
        if self._future is None:
            self._future = event_loop.submit(self._run_to_end())

    def end_early(self) -> None:
        """Nothing: `max_errors` is for live calls."""

    def cancel(self) -> None:
        """End the wait. A batch that was submitted goes on."""
        if self._future is not None:
            self._future.cancel()

    async def _run_to_end(self) -> None:
        error: BaseException | None = None
        try:
            await self.finish(begins=True)
        except errors.LLMError as raised:
            # The traceback would keep the whole job in memory for as long as the error lives.
            error = raised.with_traceback(None)
            if self.job is not None and (self.job.known or not isinstance(raised, _BEFORE_ANYTHING)):
                # Stored answers, rows of other batches and other models have theirs.
                self.job.give_up(self._engine, raised)
                error = None
        except BaseException as raised:
            error = raised
        self._deliver([(END, error)])

    def come_back(self, *works: Any) -> str:
        """How a user gets the results of batches that go on, after an interrupt of all these works."""
        # Without a future, not all inputs were read, and nothing is on its way.
        if not any(work._future for work in works):  # noqa: SLF001  # they are of this class
            return self.stored.describe_rest()
        return come_back(*works)

    @property
    def known(self) -> list[Record]:
        """The batches of the job so far."""
        return [] if self.job is None else self.job.known

    def add(self, index: int, call: Call[Any], deliver: Callable[[int, Any], object]) -> None:
        """Add an input that is not stored."""
        if call.cache == "off":
            raise errors.RequestError(
                f"delivery={self._delivery.mode!r} needs the cache, because the answers may come back to "
                "another process: leave cache='off' out, or use cache='refresh'"
            )
        if self.job is None:
            self.job = Job(self._engine, call, deliver, self._delivery)
        self.job.add(self._engine, index, call)

    def load(self) -> None:
        """Import the SDK of the job, in the thread of the user."""
        if self.job is not None:
            self._engine.load(self.job.shared)

    async def submit(self) -> None:
        """Submit the rows of the job, but for those whose answers a second level of the cache has."""
        if self.job is not None:
            if self._engine.cache.has_second_level and self.job.shared.cache in READING:
                await _end_known_rows(self._engine, self.job)
            await delivery_of(self._engine).begin(self.job)

    async def finish(self, *, begins: bool = False) -> None:
        """Deliver every input of the job, which is submitted first if it `begins`.

        The job's deadline ends the wait and not the batch.
        """
        job = self.job
        if job is None:
            return
        deadline = job.shared.deadline
        try:
            async with asyncio.timeout(None if deadline is None else max(0.0, deadline.left)):
                if begins:
                    await self.submit()
                await delivery_of(self._engine).run(job)
        except TimeoutError:
            assert deadline is not None
            error = errors.APITimeoutError(
                f"not answered by the deadline of {deadline.allowed:g} s; {come_back(self)}",
                phase="deadline",
                limit=deadline.allowed,
            )
            error.provider, error.model = job.shared.target.provider, job.shared.request.model
            job.give_up(self._engine, error)


async def _end_known_rows(engine: Engine, job: Job) -> None:
    """End the rows of a job whose answers are in the second level of the cache."""
    inbox, rows = engine.loop_state().inbox, list(job.wanted.values())
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        some = rows[start : start + _ROWS_AT_ONCE]
        read = [[engine.cache.get_soon(key, inbox) for key in row.keys] for row in some]
        for row, entries in zip(some, read, strict=True):
            call = job.calls[row.kind]
            parts = [
                engine.sample(call, await entry, key) for key, entry in zip(row.keys, entries, strict=True)
            ]
            samples = [sample for sample in parts if sample is not None]
            if len(samples) == len(row.keys):
                job.end_row(engine, row.custom_id, RowEnd(samples=samples))
            elif call.cache == "only":
                error = errors.CacheMissError(
                    "no answer is stored, and cache='only' sends nothing", key=row.keys[0]
                )
                job.end_row(engine, row.custom_id, RowEnd(error=error))


def delivery_of(engine: Engine) -> BatchDelivery:
    """The batch delivery of a client on the running loop."""
    state = engine.loop_state()
    if not isinstance(state.batches, BatchDelivery):
        state.batches = delivery = BatchDelivery(engine, state)
        state.to_close.append(delivery.close)
    return state.batches


async def run_beside_batches(engine: Engine, call: Call[Any]) -> Any:
    """The result of a live call that asks for a batch with its input first; see `Parameters.in_batch`."""
    await delivery_of(engine).before_live(call)
    stored = await engine.lookup_soon(call)
    return await engine.run(call) if stored is None else stored


def come_back(*works: BatchWork) -> str:
    """How a user gets the results of batches that go on."""
    records = [record for work in works for record in work.known]
    jobs = dict.fromkeys(each.header.job for each in records if each.header and each.is_open)
    for work in works:
        # Its next batch may have reached the provider already.
        if work.job is not None and work.job.submitting:
            jobs[work.job.id] = None
    names = " ".join(jobs)
    if not names:
        return "run the same call again to go on"
    return (
        f"the batch goes on at its provider: run the same call again, or `llm-provider batches wait {names}`"
    )


async def run_in_batch(engine: Engine, delivery: DeliveryOptions, call: Call[Any]) -> Any:
    """The result of one call, which a batch delivers, or its `LLMError`."""
    results: dict[int, Any] = {}
    work = BatchWork(engine, lambda inputs: iter(()), StoredAnswers(engine, call.cache), delivery)
    work.add(0, call, results.__setitem__)
    try:
        await work.finish(begins=True)
    except errors.LLMError as error:
        if work.job is None or not work.known:
            raise
        # Its batch goes on, and may be billed.
        work.job.give_up(engine, error.with_traceback(None))
    if isinstance(results[0], errors.LLMError):
        raise results[0]
    return results[0]
