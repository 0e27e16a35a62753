"""An event loop in virtual time, for the library, for the user's program and for the simulated providers.

The callbacks of one thread run in the order in which asyncio promises to run them. What the seed chooses is
what no promise fixes: the order of what arrives from outside at the same moment, how many callbacks run
before another thread goes on, and when that is.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import socket
from asyncio import base_events
from collections.abc import Callable
from typing import Any

from .scheduler import Scheduler, active

RESOLUTION = 1e-6

_numbers = itertools.count()


class NumberedFuture(asyncio.Future[Any]):
    """A future whose place in a set follows from a number, and not from its address in memory."""

    def __init__(self, *, loop: asyncio.AbstractEventLoop) -> None:
        self._number = next(_numbers)
        super().__init__(loop=loop)

    def __hash__(self) -> int:
        return self._number


class NumberedTask(asyncio.Task[Any]):
    """A task whose place in a set follows from a number, as that of a `NumberedFuture`."""

    def __init__(self, coroutine: Any, *, loop: asyncio.AbstractEventLoop, **options: Any) -> None:
        self._number = next(_numbers)
        super().__init__(coroutine, loop=loop, **options)

    def __hash__(self) -> int:
        return self._number


def _make_task(loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> NumberedTask:
    return NumberedTask(coroutine, loop=loop, **options)


class SimulatedLoop(base_events.BaseEventLoop):
    """Takes time, turns and connections from the active scheduler."""

    _ready: Any
    _closed: bool
    _stopping: bool

    def __init__(self) -> None:
        super().__init__()
        scheduler = active()
        assert scheduler is not None
        self._scheduler: Scheduler = scheduler
        self._arrived: list[tuple[Callable[..., object], tuple[Any, ...]]] = []
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        """The heap of the timers: tuples, as they are compared without a call of Python code."""
        self._is_woken = False
        self.slow_callback_duration = float("inf")
        self.set_task_factory(_make_task)

    def create_future(self) -> asyncio.Future[Any]:
        return NumberedFuture(loop=self)

    def time(self) -> float:
        return self._scheduler.now

    def call_at(
        self, when: float, callback: Callable[..., object], *args: Any, context: Any = None
    ) -> asyncio.TimerHandle:
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        heapq.heappush(self._timers, (when, next(_numbers), timer))
        return timer

    def call_soon(self, callback: Callable[..., object], *args: Any, context: Any = None) -> asyncio.Handle:
        if self._closed:
            raise RuntimeError("Event loop is closed")
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def deliver(self, receive: Callable[..., object], source: object, *arguments: Any) -> None:
        """Have the loop call a function with a source outside the process, and with what came from it."""
        self._arrived.append((receive, (source, *arguments)))

    def _write_to_self(self) -> None:
        self._is_woken = True

    def _has_work(self) -> bool:
        return self._is_woken or bool(self._arrived)

    def _run_once(self) -> None:
        timers, ready, scheduler = self._timers, self._ready, self._scheduler
        while timers and timers[0][2]._cancelled:
            heapq.heappop(timers)
        if ready or self._stopping or self._has_work():
            scheduler.offer_turn()
        else:
            scheduler.wait(self._has_work, timers[0][0] if timers else None)
        self._is_woken = False
        events: list[asyncio.Handle] = []
        while timers and timers[0][0] <= scheduler.now + RESOLUTION:
            events.append(heapq.heappop(timers)[2])
        if self._arrived:
            arrived, self._arrived = self._arrived, []
            events += [asyncio.Handle(receive, arguments, self) for receive, arguments in arrived]
        if len(events) > 1:
            events = _shuffle_sources(events, scheduler)
        ready.extend(events)
        count = len(ready)
        if count > 1 and scheduler.random.random() < 0.25:
            count = scheduler.random.randrange(1, count + 1)
        for _ in range(count):
            handle = ready.popleft()
            if not handle._cancelled:
                handle._run()

    async def getaddrinfo(self, host: Any, port: Any, **_: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", int(port or 0)))]

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:  # noqa: ASYNC109 - asyncio's
        return


def _shuffle_sources(events: list[asyncio.Handle], scheduler: Scheduler) -> list[asyncio.Handle]:
    """The events in another order. Those of one connection keep theirs, as their bytes do."""
    groups: dict[int, list[asyncio.Handle]] = {}
    for event in events:
        source = event if isinstance(event, asyncio.TimerHandle) else event._args[0]
        groups.setdefault(id(source), []).append(event)
    order = [key for key, group in groups.items() for _ in group]
    scheduler.random.shuffle(order)
    streams = {key: iter(group) for key, group in groups.items()}
    return [next(streams[key]) for key in order]
