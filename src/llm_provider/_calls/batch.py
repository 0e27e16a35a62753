"""Batches: many calls at once, results as they finish, in bounded memory.

The inputs are read, checked and looked up in the cache in the user's thread or event loop, only as fast as
results are taken, so an endless generator is fine. What has to be sent goes to a `_Crew` on the background
loop, which starts the next call as soon as one has ended without asking anybody, and hands results over
several at a time: crossing threads costs about as much as everything else that is done here for a call.

One failure never costs the others: it is a result like any other.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import math
import queue
from collections import deque
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Sized,
)
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

from .._errors import BatchError, BudgetExceededError, LLMError
from .._requests.request import checked_inputs
from .._runtime import event_loop
from .._types import Prompt, Response, Result

CallT = TypeVar("CallT")

_LINGER_SECONDS = 0.01
"""Longest time that a result waits for others before it is handed over: far below what a call takes."""


_ENOUGH_REFUSALS = 32
"""For want of money, of inputs that came one after the other, or fewer where fewer may be under way."""


@dataclass(frozen=True, slots=True)
class Work(Generic[CallT]):
    """What a batch does with each input.

    `begin` makes a call of each input when it is asked for, or gives the answer if that is known already, or
    an `LLMError`; it runs in the user's thread. `send` gets the answer; it runs on the background loop.
    `ceiling` is how many requests may be under way. `load` makes ready what `send` needs, in a user's thread
    that may be kept waiting.
    """

    begin: Callable[[Iterable[Prompt]], Iterator[Result | CallT]]
    send: Callable[[CallT], Awaitable[Response]]
    max_in_flight: int
    load: Callable[[CallT], object]

    @property
    def workers(self) -> int:
        """Calls being served at once: more than requests, as some back off or are being stored."""
        return self.max_in_flight + self.max_in_flight // 4 + 8

    @property
    def width(self) -> int:
        """Inputs read whose results were not taken yet: enough that no worker waits for the reader."""
        return 2 * self.max_in_flight + 16


class _Refusals:
    """Tells when a budget is used up, so that an endless iterable is read no further.

    A request may need more than is left while a shorter one still fits, so it takes several refusals with
    nothing bought in between. What has a length is read to its end: every input gets its result, and those
    that are stored cost nothing.
    """

    def __init__(self, inputs: object, max_in_flight: int) -> None:
        self._most = math.inf if isinstance(inputs, Sized) else min(max_in_flight, _ENOUGH_REFUSALS)
        self._count = 0

    def note(self, result: Result | Exception) -> None:
        if isinstance(result, BudgetExceededError):
            self._count += 1
        elif isinstance(result, Response) and not result.cached:
            self._count = 0

    @property
    def enough(self) -> bool:
        return self._count >= self._most


class _WorkerPool(Generic[CallT]):
    """The workers of one batch. `give` and `cancel` are for the user's side; the rest lives on the loop."""

    def __init__(
        self, work: Work[CallT], deliver: Callable[[list[tuple[int, Result | Exception]]], object]
    ) -> None:
        self._work = work
        self._deliver = deliver
        # Each task gets a copy: two in one context would see each other's variables.
        self._context = contextvars.copy_context()
        self._background = event_loop.current()
        self._waiting: deque[tuple[int, CallT]] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self._finished: list[tuple[int, Result | Exception]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._enough = max(1, work.max_in_flight // 2)

    def give(self, index: int, call: CallT) -> None:
        """Have a call served."""
        self._background.inbox.post(self._take, index, call)

    def cancel(self) -> None:
        """Give up what is still under way; what has finished is stored."""
        if not self._background.loop.is_closed():
            self._background.inbox.post(self._stop)

    def _take(self, index: int, call: CallT) -> None:
        self._waiting.append((index, call))
        if len(self._tasks) < self._work.workers:
            task = self._background.loop.create_task(self._serve(), context=self._context.copy())
            self._tasks.add(task)
            # For one that is cancelled before its first step.
            task.add_done_callback(self._tasks.discard)

    def _stop(self) -> None:
        self._waiting.clear()
        for task in self._tasks:
            task.cancel()

    async def _serve(self) -> None:
        while self._waiting:
            index, call = self._waiting.popleft()
            result: Result | Exception
            try:
                result = await self._work.send(call)
            except LLMError as error:
                # Its message says what failed. Its traceback would keep all of the call as long as it lives.
                result = error.with_traceback(None)
            except Exception as error:
                result = error
            self._finished.append((index, result))
            if len(self._finished) >= self._enough or not self._waiting:
                self._hand_over()
            elif self._timer is None:
                self._timer = self._background.loop.call_later(_LINGER_SECONDS, self._hand_over)
        # Now, and not by the callback of the task's end in the next turn: what comes until then would find as
        # many workers as there may be, none of which looks again.
        self._tasks.discard(cast("asyncio.Task[None]", asyncio.current_task()))

    def _hand_over(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        finished, self._finished = self._finished, []
        if finished:
            self._deliver(finished)


def _checked_result(result: Result | Exception) -> Result:
    if isinstance(result, (Response, LLMError)):
        return result
    raise result


def iterate(work: Work[CallT], inputs: Iterable[Prompt]) -> Iterator[tuple[int, Result]]:
    """Run a batch from a synchronous thread, yielding `(index, result)` as calls finish."""
    arrived: queue.SimpleQueue[list[tuple[int, Result | Exception]]] = queue.SimpleQueue()
    crew: _WorkerPool[CallT] | None = None
    source, source_error = enumerate(work.begin(checked_inputs(inputs))), None
    exhausted, outstanding = False, 0
    refusals = _Refusals(inputs, work.max_in_flight)
    try:
        while True:
            exhausted = exhausted or refusals.enough
            while not exhausted and outstanding < work.width and arrived.empty():
                try:
                    index, begun = next(source)
                except StopIteration:
                    exhausted = True
                except Exception as error:
                    # An error of the user's iterable waits until what was started has finished.
                    exhausted, source_error = True, error
                else:
                    if isinstance(begun, (Response, LLMError)):
                        yield index, begun
                    else:
                        if crew is None:
                            work.load(begun)
                            crew = _WorkerPool(work, arrived.put)
                        crew.give(index, begun)
                        outstanding += 1
            if not outstanding:
                break
            for index, result in arrived.get():
                outstanding -= 1
                refusals.note(result)
                yield index, _checked_result(result)
    finally:
        if crew is not None:
            crew.cancel()
    if source_error is not None:
        raise source_error


async def aiterate(
    work: Work[CallT], inputs: Iterable[Prompt] | AsyncIterable[Prompt]
) -> AsyncGenerator[tuple[int, Result], None]:
    """Run a batch from the user's event loop, yielding `(index, result)` as calls finish."""
    arrived: asyncio.Queue[list[tuple[int, Result | Exception]]] = asyncio.Queue()
    inbox = event_loop.inbox_here()

    def deliver(finished: list[tuple[int, Result | Exception]]) -> None:
        with contextlib.suppress(RuntimeError):  # the user's loop has ended
            inbox.post(arrived.put_nowait, finished)

    crew: _WorkerPool[CallT] | None = None
    source, source_error = _begun(work, inputs), None
    exhausted, outstanding = False, 0
    refusals = _Refusals(inputs, work.max_in_flight)
    try:
        while True:
            exhausted = exhausted or refusals.enough
            while not exhausted and outstanding < work.width and arrived.empty():
                try:
                    index, begun = await anext(source)
                except StopAsyncIteration:
                    exhausted = True
                except Exception as error:
                    exhausted, source_error = True, error
                else:
                    if isinstance(begun, (Response, LLMError)):
                        yield index, begun
                    else:
                        crew = crew or _WorkerPool(work, deliver)
                        crew.give(index, begun)
                        outstanding += 1
                    # Let the user's other tasks run, and finished calls report, while inputs are read.
                    await asyncio.sleep(0)
            if not outstanding:
                break
            for index, result in await arrived.get():
                outstanding -= 1
                refusals.note(result)
                yield index, _checked_result(result)
    finally:
        if crew is not None:
            crew.cancel()
    if source_error is not None:
        raise source_error


async def _begun(
    work: Work[CallT], inputs: Iterable[Prompt] | AsyncIterable[Prompt]
) -> AsyncIterator[tuple[int, Result | CallT]]:
    if isinstance(inputs, AsyncIterable):
        async for index, prompt in numbered(inputs):
            for begun in work.begin((prompt,)):
                yield index, begun
    else:
        for each in enumerate(work.begin(checked_inputs(inputs))):
            yield each


async def numbered(
    inputs: Iterable[Prompt] | AsyncIterable[Prompt],
) -> AsyncIterator[tuple[int, Prompt]]:
    """Inputs of either kind with their places."""
    index = 0
    if isinstance(inputs, AsyncIterable):
        async for prompt in inputs:
            yield index, prompt
            index += 1
    else:
        for prompt in checked_inputs(inputs):
            yield index, prompt
            index += 1


def in_order(results: dict[int, Result], on_error: str) -> list[Result]:
    """A finished batch's results in input order.

    Raises:
        BatchError: a call failed and `on_error` is "raise".
    """
    ordered = [results[index] for index in range(len(results))]
    failures = [result for result in ordered if isinstance(result, LLMError)]
    if failures and on_error == "raise":
        first = failures[0]
        message = f"{len(failures)} of {len(ordered)} calls failed; the first: {first}"
        raise BatchError(message, results=ordered, maybe_billed=True) from first
    return ordered
