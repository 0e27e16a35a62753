"""Batches: many calls at once, results as they finish, in bounded memory.

    inputs → look up ── stored or wrong ───────────────────────────────→ hand out → user
                └────── to send → work (workers, or a provider's batch) → collect ─┘

`Driver` says what is to be done next and does no I/O. `iterate` and `aiterate` do it, in the user's thread
and in the user's event loop. Their work gets the answers on the background loop: a `LiveWork` call by call, a
`BatchWork` by a provider's batch API. Inputs are read only as fast as results are taken.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import itertools
import math
import sys
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Callable,
    Iterable,
    Iterator,
    Sequence,
    Sized,
)
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Self, TypeAlias, cast

from ..errors import BudgetExceededError, LLMError, TooManyErrorsError
from ..journey.call import Call
from ..journey.lookup import READING
from ..runtime import clock, event_loop
from ..runtime.interrupts import shorten_interrupt
from ..runtime.termination import Terminated, heed_sigterm, is_terminated
from ..types.messages import Prompt
from ..types.response import Response, Result
from ..types.results import Results
from ..types.usage import PaidResult
from .lookup import Lookup
from .worker_pool import COUNTING_SECONDS, END, Fed, Finished, TaskFeed, ThreadFeed, describe_interrupt

if TYPE_CHECKING:
    from ..._features.progress.bar import Progress
    from ..types.usage import RowLabel
    from .work import BatchWork
    from .worker_pool import LiveWork

_ENOUGH_REFUSALS = 32
"""Inputs in a row that a budget refuses, or fewer where fewer may be in flight, so that it is used up."""


Work: TypeAlias = "LiveWork | BatchWork"
"""The inputs of one model: how they are looked up, and how the others get their answers."""


@dataclass(slots=True, eq=False)
class Observers:
    """What sees the results of a batch before the user gets them. They are entered before the first result.

    `labels` are the labels of inputs in a pandas object, which each of several models has.
    """

    tell: Callable[[Result], object] | None = None
    begin: Callable[[], Progress] | None = None
    labels: Sequence[RowLabel] | None = None
    _progress: Progress | None = field(default=None, init=False)

    def __enter__(self) -> Self:
        if self.begin is not None:
            self._progress = self.begin().__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        if self._progress is not None:
            self._progress.__exit__()

    def show(self, index: int, result: Result) -> tuple[int, Result]:
        """Show a result to all of them. It gets the label of its input."""
        if self.tell is not None:
            self.tell(result)
        if self._progress is not None:
            self._progress.update(result, index)
        if self.labels:
            # Inputs that are equal may share an error.
            result = result if result.row_label is None else copy.copy(result)
            object.__setattr__(result, "row_label", self.labels[index % len(self.labels)])
        return index, result


class Lane:
    """The inputs and the calls of one model. Several models have lanes side by side, so that none waits.

    `offset` is the index of the first input. `post` takes finished calls, on the background loop. With
    `waits`, this thread waits for the batch anyway.
    """

    def __init__(
        self, work: Work, inputs: BatchPrompts, offset: int, post: Callable[[Arrived], object], *, waits: bool
    ) -> None:
        self.work, self.inputs, self.offset = work, inputs, offset
        self.exhausted = False
        self.outstanding = 0
        self.answered = 0
        """Inputs whose answers were handed out."""
        self.unanswered: dict[int, Call[Response]] = {}
        """The calls whose results were not handed out yet, or that the user is getting just now."""
        self.handed_out: int | None = None
        """The index of the last result, which `answered` counts."""
        self.feed: ThreadFeed | TaskFeed | None = None
        """Reads the inputs aside, if any."""
        self.awaited = 0
        """Inputs that the feed was asked for and has not read yet."""
        self.read = 0
        """Inputs that were read."""
        self.error: BaseException | None = None
        """It is raised after the calls that were sent have finished."""
        self._post = post
        self._waits = waits
        # Inputs that may be read ahead of the results taken, so that no worker waits for the reader.
        self._width = 2 * work.max_in_flight + 16
        self._refused = 0
        """Inputs in a row that a budget, or `max_errors`, has refused."""
        # One refusal is not enough to stop reading, because a shorter request may still fit. An iterable with
        # a length is read to its end: every input gets a result, and hits are free.
        self._enough = math.inf if isinstance(inputs, Sized) else min(work.max_in_flight, _ENOUGH_REFUSALS)
        self._is_open = False
        self._early_stop = work.early_stop
        self._early_stop.stored = getattr(inputs, "answered_before", 0)

    @property
    def free(self) -> int:
        """How many inputs may be read now."""
        if self.exhausted:
            return 0
        free = self._width - self.outstanding
        # A feed reads no further than needed: stored answers would be handed out one by one.
        return free if self.feed is None else min(free, 1 + self.outstanding) - self.awaited

    def take_fed(self, fed: Fed) -> tuple[int, Result] | None:
        """`take` for an input that the feed has read."""
        self.awaited -= 1
        if fed.error is None:
            try:
                (outcome,) = self.work.lookup((fed.prompt,))
            except Exception as error:
                fed = Fed(error=error)
            else:
                return self.take((self.offset + self.read, outcome))
        self.awaited = 0
        if not isinstance(fed.error, Exception):
            raise cast("BaseException", fed.error)
        self.end(None if isinstance(fed.error, StopIteration) else fed.error)
        return None

    def take(self, read: tuple[int, Result | Call[Response]] | None) -> tuple[int, Result] | None:
        """Note an input that was read, None for their end. Returns its result, or sends its call."""
        if read is None:
            self.end()
            return None
        index, outcome = read
        self.read += 1
        if isinstance(outcome, PaidResult):
            self.answered += 1
            self._early_stop.stored += 1
            return index, outcome
        if not isinstance(outcome, Call):
            if self._early_stop.note_row(outcome, is_sent=False) and self._is_open:
                self.work.end_early()
            return index, outcome
        self.unanswered[index] = outcome
        if not self._is_open:
            is_list = isinstance(self.inputs, Sized)
            self.work.open(outcome, self.deliver, is_list=is_list, waits=self._waits)
            self._is_open = True
            # The end of the whole is awaited too.
            self.outstanding += self.work.sends_as_whole
        self.work.give(index, outcome)
        self.outstanding += 1
        self._early_stop.to_send += 1
        return None

    def deliver(self, finished: Finished | Fed) -> None:
        """Post finished calls, or an input that was read."""
        self._post((self, finished))

    def end(self, error: Exception | None = None) -> None:
        """Note the end of the inputs, or raise the error of the user's iterable if nothing was sent."""
        self.exhausted, self.error = True, error
        self._early_stop.all_read = True
        if error is not None and self.work.sends_as_whole:
            raise error

    def flush(self) -> None:
        if self._is_open and not self.awaited:
            self.work.flush()

    def collect(self, finished: Finished) -> Iterator[tuple[int, Result]]:
        """The results that the user gets. What is neither an answer nor an `LLMError` is raised."""
        if self._early_stop.stopped:
            self._early_stop.warn()
        for index, result in finished:
            if index == END:
                self.outstanding, self.error = 0, cast("BaseException | None", result)
                return
            self.outstanding -= 1
            self.handed_out = index
            self.answered += isinstance(result, PaidResult)
            if isinstance(result, (BudgetExceededError, TooManyErrorsError)):
                self._refused += 1
            elif isinstance(result, PaidResult) and not result.cached:
                self._refused = 0
            if not isinstance(result, (PaidResult, LLMError)):
                raise cast("BaseException", result)
            yield index, result
            # An interrupt on the way to the user loses no result: until here it counts as one that came late.
            del self.unanswered[index]
        self.exhausted = self.exhausted or self._refused >= self._enough

    def cancel(self) -> None:
        if self.feed is not None:
            self.feed.close()
            self.feed = None
        if self._is_open:
            self._is_open = False
            self.work.cancel()


class Driver:
    """Batches that run side by side. The inputs of several need a length.

    `post` takes finished calls with their lane, on the loop. With `waits`, this thread waits anyway.
    """

    def __init__(
        self, batches: Batches, post: Callable[[Arrived], object], *, waits: bool, feeds: bool
    ) -> None:
        self.lanes: list[Lane] = []
        self.arrived: Arrived | None = None
        offset = 0
        for work, inputs in batches:
            lane = Lane(work, inputs, offset, post, waits=waits)
            if feeds and not (isinstance(inputs, Sized) or work.sends_as_whole):
                kind: Any = TaskFeed if isinstance(inputs, AsyncIterable) else ThreadFeed
                lane.feed = kind(inputs, lane.deliver)
            self.lanes.append(lane)
            # The indices of each batch go on where the batch before it ended.
            offset += len(cast("Sized", inputs)) if len(batches) > 1 else 0

    def steps(self, nothing_arrived: Callable[[], bool]) -> Iterator[Lane | tuple[int, Result] | None]:
        """What is to be done next, until all inputs have their results; raises an error of the inputs.

        It yields a lane to read its next input, a result to hand out, or None to wait for `arrived` calls.
        """
        while True:
            reading = True
            while reading and nothing_arrived():
                reading = False
                for lane in self.lanes:
                    free = lane.free
                    if free > 0 and lane.feed is not None:
                        lane.awaited += free
                        lane.feed.ask(free)
                    elif free > 0:
                        yield lane
                        reading = reading or not lane.exhausted
            if not any(lane.outstanding or lane.awaited for lane in self.lanes):
                break
            for lane in self.lanes:
                lane.flush()
            yield None
            lane, finished = cast("Arrived", self.arrived)
            if not isinstance(finished, Fed):
                yield from lane.collect(finished)
            elif answered := lane.take_fed(finished):
                yield answered
        for lane in self.lanes:
            if lane.error is not None:
                raise lane.error

    def close(self) -> None:
        """Cancel the calls under way."""
        for lane in self.lanes:
            lane.cancel()

    def note_interrupt(self, interrupt: BaseException) -> None:
        """Add to an interrupt how many calls are answered, and what the next run does."""
        self.close()
        lengths = [len(lane.inputs) for lane in self.lanes if isinstance(lane.inputs, Sized)]
        total = sum(lengths) if len(lengths) == len(self.lanes) else None
        answered, is_exact = sum(lane.answered for lane in self.lanes), False
        with contextlib.suppress(KeyboardInterrupt):  # a second one ends the count
            stored, is_exact = self._count_others()
            answered += stored
        for lane in self.lanes:
            if hasattr(lane.inputs, "answered_calls"):
                lane.inputs.answered_calls = answered
        rest = self.lanes[0].work.come_back(*(lane.work for lane in self.lanes))
        note = describe_interrupt(answered, total, "calls are answered", rest, is_exact=is_exact)
        interrupt.add_note(note)
        shorten_interrupt(interrupt)
        if is_terminated() and not any(hasattr(lane.inputs, "answered_calls") for lane in self.lanes):
            # Python shows no traceback of an exit, and so no note.
            sys.stderr.write(f"llm_provider: SIGTERM ended the batch: {note}\n")

    def _count_others(self) -> tuple[int, bool]:
        """How many of the inputs without a result have a stored answer, and whether all were looked up."""
        answers, count, until = self.lanes[0].work.stored, 0, clock.monotonic() + COUNTING_SECONDS
        if answers.cache not in READING:
            return 0, True
        answers.settle(*(lane.work for lane in self.lanes))
        for lane in self.lanes:
            inputs: Any = lane.inputs
            unread: Iterator[Any] = iter(())
            if isinstance(inputs, Sequence) or hasattr(inputs, "answered_before"):
                # They can be read again.
                unread = itertools.islice(inputs, lane.read, None)
            late: Any = getattr(inputs, "answered_late", None)
            for index, each in itertools.chain(lane.unanswered.items(), zip(itertools.repeat(-1), unread)):
                if lane.work.stored.prepare is None or clock.monotonic() > until:
                    return count, False
                is_stored = lane.work.stored.has(each)
                count += is_stored and index != lane.handed_out
                if is_stored and late is not None and index >= 0:
                    late[index - lane.offset] = lane.work.stored.read(each)
        return count, True


Arrived: TypeAlias = tuple[Lane, Finished | Fed]
BatchPrompts: TypeAlias = Iterable[Prompt] | AsyncIterable[Prompt]
Batches: TypeAlias = Sequence[tuple[Work, BatchPrompts]]
"""How the inputs of each model are looked up and sent, and its prompts."""


def iterate(batches: Batches, observers: Observers, *, feeds: bool = False) -> Iterator[tuple[int, Result]]:
    """Run batches side by side from a synchronous thread, yielding `(index, result)` as calls finish.

    The indices of each batch go on where the batch before it ended. The observers see each result first. With
    `feeds`, results are handed out while an iterator of inputs is waited for.
    """
    queue: SimpleQueue[Arrived] = SimpleQueue()
    driver = Driver(batches, queue.put, waits=True, feeds=feeds)
    try:
        with heed_sigterm(), observers, contextlib.closing(driver):
            sources = {
                lane: enumerate(lane.work.lookup(cast("Iterable[Prompt]", lane.inputs)), lane.offset)
                for lane in driver.lanes
            }
            for step in driver.steps(queue.empty):
                if step is None:
                    driver.arrived = queue.get()
                elif isinstance(step, tuple):
                    yield observers.show(*step)
                else:
                    try:
                        read = next(sources[step], None)
                    except Exception as error:
                        step.end(error)
                    else:
                        answered = step.take(read)
                        if answered is not None:
                            yield observers.show(*answered)
    except (KeyboardInterrupt, Terminated) as interrupt:
        driver.note_interrupt(interrupt)
        raise


async def aiterate(
    batches: Batches, observers: Observers, *, feeds: bool = False
) -> AsyncGenerator[tuple[int, Result], None]:
    """`iterate` from the user's event loop."""
    queue: asyncio.Queue[Arrived] = asyncio.Queue()
    inbox = event_loop.inbox_here()

    def post(arrived: Arrived) -> None:
        with contextlib.suppress(RuntimeError):  # the user's loop has ended
            inbox.post(queue.put_nowait, arrived)

    driver = Driver(batches, post, waits=False, feeds=feeds)
    sources = {lane: look_up(lane.work.lookup, lane.inputs, lane.offset) for lane in driver.lanes}
    try:
        with heed_sigterm(asyncio.get_running_loop()), observers, contextlib.closing(driver):
            for step in driver.steps(queue.empty):
                if step is None:
                    driver.arrived = await queue.get()
                    if isinstance(driver.arrived[1], Fed):
                        # As below: a queue that is not empty does not let other tasks run.
                        await asyncio.sleep(0)
                elif isinstance(step, tuple):
                    yield observers.show(*step)
                else:
                    try:
                        read = await anext(sources[step], None)
                    except Exception as error:
                        step.end(error)
                    else:
                        answered = step.take(read)
                        # While inputs are read, the user's other tasks run, and results arrive.
                        await asyncio.sleep(0)
                        if answered is not None:
                            yield observers.show(*answered)
    except (KeyboardInterrupt, asyncio.CancelledError) as interrupt:
        with contextlib.suppress(RuntimeError):  # the loop's threads have ended
            await asyncio.to_thread(driver.note_interrupt, interrupt)
        raise


async def look_up(
    lookup: Lookup, inputs: Iterable[Prompt] | AsyncIterable[Prompt], index: int = 0
) -> AsyncIterator[tuple[int, Result | Call[Response]]]:
    """The inputs with their stored answers, their errors or their calls, and their indices."""
    if isinstance(inputs, AsyncIterable):
        async for prompt in inputs:
            for outcome in lookup((prompt,)):
                yield index, outcome
            index += 1
    else:
        for each in enumerate(lookup(inputs), index):
            yield each


def in_order(results: dict[int, Result], on_error: str) -> Results[Result]:
    """The results of a finished batch in the order of its inputs; a `BatchError` if `on_error` is "raise"."""
    ordered = Results(results[index] for index in range(len(results)))
    if on_error == "raise":
        ordered.raise_for_errors()
    return ordered
