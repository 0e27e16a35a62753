"""The results of a job as they come: stored ones at once, the others when their batches have ended."""

from __future__ import annotations

import asyncio
import contextlib
import queue
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .._calls.batch import offsets
from .._calls.batch_lookup import Lookup
from .._calls.call import Call
from .._calls.engine import READING
from .._errors import APITimeoutError, CacheMissError, LLMError, RequestError
from .._requests.checks import Resend
from .._runtime import event_loop
from .collect import RowEnd
from .delivery import BatchDelivery
from .job import Job
from .journal import Record

if TYPE_CHECKING:
    from .._calls.engine import Engine
    from .._types.messages import Prompt

_END = -1
"""The index under which the end of a job arrives, with its error if it has one."""


_ROWS_AT_ONCE = 1000
"""Rows that are looked up in a second level of the cache together."""


@dataclass(slots=True)
class BatchWork:
    """How the inputs of a job are looked up and delivered."""

    engine: Engine
    lookup: Lookup
    resend: Resend = "batch"
    job: Job | None = None
    """None until an input is not stored."""

    @property
    def known(self) -> list[Record]:
        """The batches of the job so far."""
        return [] if self.job is None else self.job.known

    def add(self, index: int, call: Call[Any], deliver: Callable[[int, Any], object]) -> None:
        """Add an input that is not stored."""
        if call.cache == "off":
            raise RequestError(
                "delivery='batch' needs the cache, because the answers may come back to another process: "
                "leave cache='off' out, or use cache='refresh'"
            )
        if self.job is None:
            self.job = Job(call, deliver, self.resend)
        self.job.add(self.engine, index, call)

    def load(self) -> None:
        """Import the SDK of the job, in the thread of the user."""
        if self.job is not None:
            self.engine.load(self.job.shared)

    async def begin(self) -> None:
        """Submit the rows of the job."""
        if self.job is not None:
            if self.engine.cache.has_second_level and self.job.shared.cache in READING:
                await _look_behind(self.engine, self.job)
            await delivery_of(self.engine).begin(self.job)

    async def finish(self) -> None:
        """Deliver every input of the job. Its deadline ends the wait and not the batch."""
        job = self.job
        if job is None:
            return
        deadline = job.shared.deadline
        try:
            async with asyncio.timeout(None if deadline is None else max(0.0, deadline.left)):
                await delivery_of(self.engine).run(job)
        except TimeoutError:
            assert deadline is not None
            error = APITimeoutError(
                f"not answered by the deadline of {deadline.allowed:g} s; {come_back(self)}",
                phase="deadline",
                limit=deadline.allowed,
            )
            error.provider, error.model = job.shared.target.provider, job.shared.request.model
            job.give_up(self.engine, error)

    async def whole(self) -> None:
        """Submit the rows and deliver every input."""
        await self.begin()
        await self.finish()


async def _look_behind(engine: Engine, job: Job) -> None:
    """End the rows of a job whose answers are in the second level of the cache."""
    here, rows = engine.here().loop, list(job.wanted.values())
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        some = rows[start : start + _ROWS_AT_ONCE]
        read = [[engine.cache.get_soon(key, here) for key in row.keys] for row in some]
        for row, entries in zip(some, read, strict=True):
            call = job.calls[row.kind]
            found = [engine.sample(call, await entry) for entry in entries]
            samples = [sample for sample in found if sample is not None]
            if len(samples) == len(row.keys):
                job.ended(engine, row.custom_id, RowEnd(samples=samples))
            elif call.cache == "only":
                error = CacheMissError("no answer is stored, and cache='only' sends nothing", key=row.keys[0])
                job.ended(engine, row.custom_id, RowEnd(error=error))


def delivery_of(engine: Engine) -> BatchDelivery:
    """The batch delivery of a client on the running loop."""
    state = engine.here()
    if not isinstance(state.batches, BatchDelivery):
        state.batches = delivery = BatchDelivery(engine)
        state.to_close.append(delivery.close)
    return state.batches


async def run_beside_batches(engine: Engine, call: Call[Any]) -> Any:
    """The result of a live call that asks for a batch with its input first; see `Parameters.in_batch`."""
    await delivery_of(engine).before_live(call)
    found = await engine.lookup_soon(call)
    return await engine.run(call) if found is None else found


def come_back(*works: BatchWork) -> str:
    """How a user gets the results of batches that go on."""
    records = [record for work in works for record in work.known]
    found = dict.fromkeys(one.header.job for one in records if one.header and one.is_open)
    for work in works:
        # Its next batch may have reached the provider already.
        if work.job is not None and work.job.submitting:
            found[work.job.id] = None
    names = " ".join(found)
    if not names:
        return "run the same call again to go on"
    return (
        f"the batch goes on at its provider: run the same call again, or `llm-provider batches wait {names}`"
    )


def iterate(*batches: tuple[BatchWork, Iterable[Prompt]]) -> Iterator[tuple[int, Any]]:
    """Run jobs side by side from a synchronous thread, yielding `(index, result)`.

    The indices of each job follow those of the one before it, whose inputs then need a length.
    """
    arrived: queue.SimpleQueue[tuple[int, Any]] = queue.SimpleQueue()

    def deliver(index: int, result: Any) -> None:
        arrived.put((index, result))

    for (work, inputs), offset in zip(batches, offsets(batches), strict=True):
        for index, found in enumerate(work.lookup(inputs), offset):
            if isinstance(found, Call):
                work.add(index, found, deliver)
            else:
                yield index, found
    works = [work for work, _ in batches if work.job is not None]
    if not works:
        return
    for work in works:
        work.load()
    future = event_loop.submit(_told(works, deliver))
    try:
        while True:
            index, result = arrived.get()
            if index == _END:
                if result is not None:
                    raise result
                return
            yield index, result
    except KeyboardInterrupt as interrupt:
        interrupt.add_note(come_back(*works))
        raise
    finally:
        future.cancel()


async def aiterate(
    *batches: tuple[BatchWork, Iterable[Prompt] | AsyncIterable[Prompt]],
) -> AsyncGenerator[tuple[int, Any], None]:
    """`iterate` on the user's event loop."""
    arrived: asyncio.Queue[tuple[int, Any]] = asyncio.Queue()
    inbox = event_loop.inbox_here()

    def deliver(index: int, result: Any) -> None:
        with contextlib.suppress(RuntimeError):  # the user's loop has ended
            inbox.post(arrived.put_nowait, (index, result))

    for (work, inputs), offset in zip(batches, offsets(batches), strict=True):
        async for place, found in looked_up(work, inputs):
            if isinstance(found, Call):
                work.add(offset + place, found, deliver)
            else:
                yield offset + place, found
    works = [work for work, _ in batches if work.job is not None]
    if not works:
        return
    future = event_loop.submit(_told(works, deliver))
    try:
        while True:
            index, result = await arrived.get()
            if index == _END:
                if result is not None:
                    raise result
                return
            yield index, result
    finally:
        future.cancel()


async def looked_up(
    work: BatchWork, inputs: Iterable[Prompt] | AsyncIterable[Prompt]
) -> AsyncGenerator[tuple[int, Any], None]:
    """The inputs with their stored answers, their errors or their calls."""
    if isinstance(inputs, AsyncIterable):
        index = 0
        async for prompt in inputs:
            for found in work.lookup((prompt,)):
                yield index, found
            index += 1
        return
    for index, found in enumerate(work.lookup(inputs)):
        yield index, found
        # While inputs are read, the user's other tasks run.
        await asyncio.sleep(0)


async def _told(works: Sequence[BatchWork], deliver: Callable[[int, Any], object]) -> None:
    """Run jobs, and tell their end. An error of one is told when the others have ended."""
    ends = await asyncio.gather(*(work.whole() for work in works), return_exceptions=True)
    error = next((end for end in ends if end is not None), None)
    deliver(_END, error.with_traceback(None) if isinstance(error, LLMError) else error)
