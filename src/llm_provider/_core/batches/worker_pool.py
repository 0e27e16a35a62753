"""The workers of a live batch: each call is sent by itself, as soon as a worker is free.

They run on the background loop. A worker starts its next call as soon as one has ended, without waiting for
the user's thread, and the results are handed over in groups. Groups save 12 % of the CPU time of `call_many`
(467 µs per call; 554 µs with `_hand_over` after each result). It is the median of the ratios of 7 alternating
runs of 2,000 calls, 32 at a time. `python -m benchmarks compare` measures it against a copy without groups.

Feeds read the inputs of an iterator aside, so that results are handed out while the next input is awaited:
the lines of a pipe, or questions that follow from answers, may take as long as they like. `StoredAnswers`
counts what an interrupted batch leaves.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
from collections import deque
from collections.abc import AsyncIterable, Awaitable, Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

from .. import doors
from ..errors import LLMError
from ..journey.call import Call, Sample
from ..journey.engine import WRITING, Engine
from ..journey.lookup import is_too_old
from ..journey.sent_requests import EarlyStop
from ..requests.request import describe_input
from ..runtime import event_loop, threads, warning
from ..types.messages import Prompt
from ..types.response import Response, Result
from .lookup import Lookup

if TYPE_CHECKING:
    from ..._features.prompt_caching.prefix_gate import PrefixGate


END = -1
"""The index under which a provider's batch tells its end, with its error or None."""

Finished: TypeAlias = list[tuple[int, Result | BaseException | None]]
"""Finished calls with the indices of their inputs."""

COUNTING_SECONDS = 2.0
"""Longest time for looking up inputs after an interrupt. A hundred thousand inputs take some ten seconds."""

_SETTLING_SECONDS = 0.02
"""Turns of the loop in which cancelled calls end, as a rule."""


@dataclass(frozen=True, slots=True)
class StoredAnswers:
    """Says which calls of a batch have a stored answer, without counting hits."""

    engine: Engine
    cache: object
    """The mode of the cache."""
    prepare: Callable[[Any], Call[Any]] | None = None
    """The call of an input; None for calls of several rounds, where entries do not tell the last one."""

    def settle(self, *works: Any) -> None:
        """Wait until cancelled calls, all those of these works, have ended and their answers are written."""

        async def wait_for_ends() -> None:
            await asyncio.sleep(_SETTLING_SECONDS)
            # On a busy machine the sleep is one turn of the loop, and a call with followers needs several.
            if tasks := [task for work in works for task in getattr(work, "tasks", ())]:
                await asyncio.wait(tasks, timeout=COUNTING_SECONDS)

        with contextlib.suppress(RuntimeError, TimeoutError):  # the loop is closed, or too busy
            loop = event_loop.current().loop
            asyncio.run_coroutine_threadsafe(wait_for_ends(), loop).result(COUNTING_SECONDS)
        self.engine.cache.flush()

    def count_parts(self, call: Call[Any]) -> int:
        """How many samples or texts of a call are stored."""
        entries = [self.engine.cache.peek(call.key(part)) for part in call.parts]
        return sum(entry is not None and not is_too_old(call, entry) for entry in entries)

    def has(self, call_or_input: Any) -> bool:
        """Whether a call, or the call of an input, would be answered from the local store."""
        call = call_or_input
        try:
            if not isinstance(call, Call) and self.prepare is not None:
                call = self.prepare(call)
        except LLMError:
            return False
        return any(self.count_parts(each) == len(each.parts) for each in call.candidates)

    def read(self, call: Call[Any]) -> Any:
        """The answer of a call that was cancelled after it had arrived, with its cost; None without one."""
        peek, operation = self.engine.cache.peek, call.operation
        samples = [self.engine.sample(call, peek(call.key(part))) for part in call.parts]
        if call.relay is not None or None in samples:
            return None
        # The call of another process may have bought it.
        shared = not call.sent.including_parts().attempts
        return operation.result(call, [replace(cast("Sample", each), cached=shared) for each in samples])

    def describe_rest(self) -> str:
        """What the same call does after an interrupt."""
        if self.cache in ("off", False):
            return "the same call asks all of them, as cache='off' stores nothing"
        if self.cache == "refresh":
            return "the same call asks all of them again, and with cache='use' only the rest"
        return "the same call asks the rest and takes the answers from the cache"


def note_parts(engine: Engine, call: Call[Any], interrupt: KeyboardInterrupt) -> None:
    """Add to the interrupt of a call with several samples or texts how many of them are stored."""
    stored = StoredAnswers(engine, call.cache)
    stored.settle()
    if call.cache in WRITING and call.relay is None:
        answered, parts = stored.count_parts(call), len(call.parts)
        interrupt.add_note(describe_interrupt(answered, parts, "parts are answered", stored.describe_rest()))


def describe_interrupt(
    answered: int, total: int | None, where: str, rest: str, *, is_exact: bool = True
) -> str:
    """What an interrupted batch leaves, for scripts and for the command line.

    >>> describe_interrupt(11, 12, "rows are answered in out.jsonl", "the same command asks the rest")
    '11 of 12 rows are answered in out.jsonl; the same command asks the rest'
    """
    least = "" if is_exact else "at least "
    return f"{least}{answered:,}{'' if total is None else f' of {total:,}'} {where}; {rest}"


class Fed(NamedTuple):
    """An input that was read, or the error of the iterator: a `StopIteration` at its end."""

    prompt: Prompt = ""
    error: BaseException | None = None


class ThreadFeed:
    """Reads as many inputs as it was asked for, and gives each of them to `post`, in the thread."""

    def __init__(self, inputs: Iterable[Prompt], post: Callable[[Fed], object]) -> None:
        self._inputs, self._post = inputs, post
        self._wanted: SimpleQueue[int] = SimpleQueue()
        self._is_started = self._is_closed = False

    def ask(self, count: int) -> None:
        """Read more inputs."""
        if not self._is_started:
            self._is_started = True
            work = partial(contextvars.copy_context().run, self._read)
            threads.start_thread(work, "llm_provider-inputs")
        self._wanted.put(count)

    def close(self) -> None:
        """Read no more. An input that is awaited is lost."""
        self._is_closed = True
        self._wanted.put(0)

    def _read(self) -> None:
        try:
            inputs = iter(self._inputs)
            while count := self._wanted.get():
                for _ in range(count):
                    if not self._is_closed:
                        fed = Fed(next(inputs))
                    if self._is_closed:
                        return
                    self._post(fed)
        except BaseException as error:
            if "same thread" in str(error):
                error.add_note("an iterator is read in a thread of its own: give a list, or connect in it")
            self._post(Fed(error=error))


class TaskFeed:
    """`ThreadFeed` for an asynchronous iterable, in a task of the user's loop."""

    def __init__(self, inputs: AsyncIterable[Prompt], post: Callable[[Fed], object]) -> None:
        self._inputs, self._post = inputs, post
        self._wanted: asyncio.Queue[int] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None
        self._is_closed = False

    def ask(self, count: int) -> None:
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._read())
        self._wanted.put_nowait(count)

    def close(self) -> None:
        self._is_closed = True
        if self._task is not None:
            with contextlib.suppress(RuntimeError):  # the user's loop has ended
                self._task.cancel()

    async def _read(self) -> None:
        try:
            inputs = aiter(self._inputs)
            while True:
                for _ in range(await self._wanted.get()):
                    self._post(Fed(await anext(inputs)))
        except StopAsyncIteration:
            self._post(Fed(error=StopIteration()))
        except BaseException as error:
            if self._is_closed:
                raise
            self._post(Fed(error=error))


_LINGER_SECONDS = 0.01
"""Longest time that a result waits before it is handed over. It is short compared with a call."""


@dataclass(slots=True, eq=False)
class LiveWork:
    """The inputs of one model, whose calls are sent each by itself, by workers on the background loop.

    `BatchWork` has the same attributes and methods for the driver, which uses them in the user's thread.
    """

    lookup: Lookup
    """Yields for each input its stored answer, its error, or the call to send."""
    run: Callable[[Call[Response]], Awaitable[Response]]
    """Gets the answer of a call, on the background loop."""
    cancel_task: Callable[[asyncio.Task[Any]], object]
    """Cancels a task that runs calls."""
    max_in_flight: int
    """How many requests may be in flight."""
    load: Callable[[Call[Response], bool], object]
    """Loads what `run` needs for the first call; its SDK too, if the thread waits for the batch anyway."""
    stored: StoredAnswers
    """Says after an interrupt which inputs are answered."""
    early_stop: EarlyStop = field(default_factory=EarlyStop)
    """Says whether the batch was stopped."""
    caches_prompts: bool = False
    """Whether common prefixes are written to the provider's prompt cache before they are read there."""
    _deliver: Callable[[Finished], object] = field(init=False)
    _context: contextvars.Context = field(init=False)
    _background: event_loop.BackgroundLoop = field(init=False)
    _gate: PrefixGate | None = field(default=None, init=False)
    _waiting: deque[tuple[int, Call[Response]]] = field(default_factory=deque, init=False)
    tasks: set[asyncio.Task[None]] = field(default_factory=set, init=False)
    """The workers, on the background loop."""
    _finished: Finished = field(default_factory=list, init=False)
    _timer: asyncio.TimerHandle | None = field(default=None, init=False)
    _stopped: bool = field(default=False, init=False)

    sends_as_whole = False
    """Whether nothing is sent before all inputs are read. `END` then tells the end of the calls."""

    def come_back(self, *_: Any) -> str:
        """What a user does after an interrupt of some works, this one among them."""
        return self.stored.describe_rest()

    def open(
        self, call: Call[Response], deliver: Callable[[Finished], object], *, is_list: bool, waits: bool
    ) -> None:
        """Prepare to take calls, beginning with this one.

        `deliver` takes finished calls, on the background loop. `is_list` says whether the inputs are all
        there, and `waits` whether this thread waits for the batch anyway.
        """
        self.load(call, waits)
        self._deliver = deliver
        # Each task gets a copy: tasks with one context would see each other's variables.
        self._context = warning.copy_context()
        self._background = event_loop.current()
        if self.caches_prompts:
            self._gate = doors.prefix_gate.PrefixGate(self._take, is_list=is_list)

    def give(self, index: int, call: Call[Response]) -> None:
        """Take a call."""
        self._background.inbox.post(self._take if self._gate is None else self._gate.take, index, call)

    def flush(self) -> None:
        """Note that no further input is read before a call has ended."""
        if self._gate is not None:
            self._background.inbox.post(self._gate.flush)

    def end_early(self) -> None:
        """Break off the waits of calls, after inputs that failed have ended the batch."""
        self._background.inbox.post(self.early_stop.break_off_waits)

    def cancel(self) -> None:
        """Cancel what is under way. The answers of finished calls are stored."""
        # It refers to its lane. A cycle would wait for the garbage collector.
        self._deliver = _ignore
        with contextlib.suppress(RuntimeError):  # the loop is closed, so the calls have ended
            # Not by the inbox, which may hold thousands of calls that would all be sent before.
            self._background.loop.call_soon_threadsafe(self._stop)

    def _take(self, index: int, call: Call[Response]) -> None:
        if self._stopped:
            return
        self._waiting.append((index, call))
        # More calls than requests run at the same time, as some back off or are stored.
        if len(self.tasks) < self.max_in_flight + self.max_in_flight // 4 + 8:
            task = self._background.loop.create_task(self._serve(), context=self._context.copy())
            self.tasks.add(task)
            # For a task that is cancelled before its first step.
            task.add_done_callback(self.tasks.discard)

    def _stop(self) -> None:
        self._stopped = True
        # Calls that wait at the gate end here too: `_take` takes none of them any more. Their memory is that
        # of the gate, which ends with this object.
        self._waiting.clear()
        for task in self.tasks:
            self.cancel_task(task)

    async def _serve(self) -> None:
        while self._waiting:
            index, call = self._waiting.popleft()
            result: Result | BaseException
            try:
                result = await self.run(call)
            except LLMError as error:
                # The traceback would keep the whole call in memory for as long as the error lives.
                result = error.with_traceback(None)
                error.prompt = describe_input(call.request)
            except asyncio.CancelledError:
                raise
            except BaseException as error:  # an interrupt in a tool would end the loop
                result = error
            stop = self.early_stop
            stop.ended_calls += 1
            if not isinstance(result, BaseException):
                stop.answered_calls += 1
            elif isinstance(result, LLMError) and stop.note_row(result, is_sent=True):
                stop.break_off_waits()
            self._finished.append((index, result))
            if self._gate is not None:
                self._gate.note_end(index, result)
            if len(self._finished) >= max(1, self.max_in_flight // 2) or not self._waiting:
                self._hand_over()
            elif self._timer is None:
                self._timer = self._background.loop.call_later(_LINGER_SECONDS, self._hand_over)
        # The done callback runs one event-loop iteration later. A call that arrives before it would start no
        # worker, and none of the others would look for calls again.
        self.tasks.discard(cast("asyncio.Task[None]", asyncio.current_task()))

    def _hand_over(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        finished, self._finished = self._finished, []
        if finished:
            self._deliver(finished)


def _ignore(_: Finished) -> None:
    """Take results that nobody waits for."""
