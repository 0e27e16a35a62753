"""The threads of a simulated process: one of them runs at a time, and a seed chooses which.

`install` replaces what Python's own modules are built on: the clock, the lock, the simple queue, the start of
a thread and the sources of randomness. `threading.Condition`, `concurrent.futures` and asyncio are Python
code above these, so they run unchanged. Nothing is replaced in the library or in an SDK. While no scheduler
is active, the replacements do what Python does.
"""

from __future__ import annotations

import _thread
import functools
import os
import queue
import random
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

READING_SECONDS = 1e-6
"""Virtual seconds that pass with every reading of the clock: two readings are never the same."""

LONGEST_LAG = 0.3
"""Virtual seconds that a writing thread may wait for its disk."""

_real_start = _thread.start_new_thread
_real_lock = _thread.allocate_lock
_real_clock = time.perf_counter


class SimulatedThread:
    """A thread that waits for its turn."""

    __slots__ = ("baton", "deadline", "has_ended", "is_ready", "may_lag", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.may_lag = name.startswith("llm_provider-cache")
        """Whether its waits may end late: it has the disk to write to."""
        self.baton = _real_lock()
        self.baton.acquire()
        self.is_ready: Callable[[], bool] = _always
        self.deadline: float | None = None
        self.has_ended = False


def _always() -> bool:
    return True


def _never() -> bool:
    return False


class Scheduler:
    """Gives the turn to one thread at a time. The derived class says what happens when every thread waits.

    Args:
        seed: decides every choice.
        lagging: the share of the waits of a writing thread that end late, as a slow disk lets them.
    """

    def __init__(self, seed: str, lagging: float = 0.0) -> None:
        self.random = random.Random(seed)
        self.entropy = random.Random(seed + " entropy")
        """What the program itself draws, so that a further draw changes no choice of the scheduler."""
        self.now = 0.0
        """Virtual seconds since the beginning of the history."""
        self.wall_offset = 1_795_000_000.0
        """The wall clock minus `now`. A jump of the clock changes it."""
        self.steps = 0
        self._lagging = lagging
        self._current = SimulatedThread("main")
        self._threads = [self._current]

    def wait_for_others(self, deadline: float | None, *, can_run: bool = False) -> None:
        """Let the world go on. It returns when something arrived, or at the deadline.

        Args:
            deadline: the next moment at which a thread of this process has something to do; None for never.
            can_run: whether a thread could run at once.
        """
        raise NotImplementedError

    def read_clock(self) -> float:
        """The monotonic clock."""
        self.now += READING_SECONDS
        return self.now

    def sleep(self, seconds: float) -> None:
        """Let the calling thread wait."""
        self.wait(_never, self.now + max(0.0, seconds))

    def wait(self, is_ready: Callable[[], bool], deadline: float | None = None) -> bool:
        """Let the calling thread wait until a condition holds, or until a deadline. Returns the condition."""
        here = self._current
        is_late = here.may_lag and bool(self._lagging) and self.random.random() < self._lagging
        try:
            while True:
                here.is_ready, here.deadline = is_ready, deadline
                self._pass_turn()
                if is_late:
                    here.is_ready, here.deadline = _never, self.now + LONGEST_LAG * self.random.random()
                    self._pass_turn()
                if is_ready() or (deadline is not None and deadline <= self.now):
                    return is_ready()
        finally:
            here.is_ready, here.deadline = _always, None

    def offer_turn(self) -> None:
        """Let another thread go on, if the seed says so. By itself a scheduler never does."""

    def start_thread(self, function: Callable[..., object], arguments: tuple[Any, ...] = ()) -> int:
        """Start a thread, which waits for its turn."""
        owner = getattr(function, "__self__", None)
        thread = SimulatedThread(getattr(owner, "name", "thread"))
        if owner is not None:
            owner.simulated = thread

        def run() -> None:
            thread.baton.acquire()
            try:
                function(*arguments)
            finally:
                thread.has_ended = True
                self._threads.remove(thread)
                self._pass_turn()

        self._threads.append(thread)
        return _real_start(run, ())

    def _pass_turn(self) -> None:
        here = self._current
        self.steps += 1
        while not (runnable := self._list_runnable()):
            self.wait_for_others(self._next_deadline())
        following = runnable[0] if len(runnable) == 1 else self.random.choice(runnable)
        if following is not here:
            self._current = following
            following.baton.release()
            if not here.has_ended:
                here.baton.acquire()

    def _list_runnable(self) -> list[SimulatedThread]:
        now = self.now
        return [
            each
            for each in self._threads
            if (each.deadline is not None and each.deadline <= now) or each.is_ready()
        ]

    def _next_deadline(self) -> float | None:
        return min((each.deadline for each in self._threads if each.deadline is not None), default=None)


class CooperativeLock:
    """A lock, at which a thread gives its turn to others instead of blocking the process."""

    __slots__ = ("__weakref__", "_is_held")

    def __init__(self) -> None:
        self._is_held = False

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        scheduler = _active
        if scheduler is not None and not self._is_held:
            scheduler.offer_turn()
        if self._is_held and blocking:
            if scheduler is None:
                raise RuntimeError("a thread waits for a lock while nothing is simulated")
            scheduler.wait(self._is_free, None if timeout < 0 else scheduler.now + timeout)
        if self._is_held:
            return False
        self._is_held = True
        return True

    def _is_free(self) -> bool:
        return not self._is_held

    def release(self) -> None:
        if not self._is_held:
            raise RuntimeError("release unlocked lock")
        self._is_held = False

    def locked(self) -> bool:
        return self._is_held

    def _at_fork_reinit(self) -> None:
        self._is_held = False

    __enter__ = acquire

    def __exit__(self, *exception: object) -> None:
        self.release()


class CooperativeQueue:
    """`queue.SimpleQueue` in one step: Python's own, above locks, takes ten times longer."""

    def __init__(self) -> None:
        self._items: deque[Any] = deque()

    def put(self, item: Any, block: bool = True, timeout: float | None = None) -> None:
        self._items.append(item)
        if _active is not None:
            _active.offer_turn()

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        if _active is not None:
            _active.offer_turn()
            if block and not self._items:
                _active.wait(self._has_items, None if timeout is None else _active.now + timeout)
        if not self._items:
            raise queue.Empty
        return self._items.popleft()

    def _has_items(self) -> bool:
        return bool(self._items)

    def put_nowait(self, item: Any) -> None:
        self.put(item)

    def get_nowait(self) -> Any:
        return self.get(block=False)

    def empty(self) -> bool:
        return not self._items


_active: Scheduler | None = None


def active() -> Scheduler | None:
    """The scheduler of this process; None outside a simulation."""
    return _active


def activate(scheduler: Scheduler | None) -> None:
    """Begin a simulation in this process, or end it."""
    global _active  # noqa: PLW0603 - one for each process
    _active = scheduler


def install() -> None:
    """Replace the clock, the lock, the start of a thread and the randomness of Python's modules.

    It comes before the import of anything that keeps a reference to them.
    """
    _install_clock()
    _install_locks()
    _install_threads()
    _install_randomness()


def _install_clock() -> None:
    def monotonic() -> float:
        return _real_clock() if _active is None else _active.read_clock()

    def wall(real: Callable[[], float] = time.time) -> float:
        return real() if _active is None else _active.read_clock() + _active.wall_offset

    def sleep(seconds: float, real: Callable[[float], None] = time.sleep) -> None:
        real(seconds) if _active is None else _active.sleep(seconds)

    for name, function in {"monotonic": monotonic, "perf_counter": monotonic, "time": wall}.items():
        setattr(time, name, function)
        setattr(time, f"{name}_ns", lambda read=function: int(read() * 1e9))
    time.sleep = sleep
    # `_core.runtime.clock` reads the monotonic clock in this way.
    time.clock_gettime = lambda _: monotonic()  # type: ignore[assignment]  # of every clock
    time.clock_gettime_ns = lambda _: int(monotonic() * 1e9)  # type: ignore[assignment]  # the same
    threading._time = queue.time = monotonic


def _install_locks() -> None:
    threading.Lock = threading._allocate_lock = CooperativeLock
    threading._CRLock = None
    threading.RLock = functools.RLock = threading._PyRLock
    queue.SimpleQueue = CooperativeQueue


def _install_threads() -> None:
    def start(function: Callable[..., object], *arguments: Any, **options: Any) -> int:
        if _active is None:
            raise RuntimeError("a thread is started while nothing is simulated")
        return _active.start_thread(function, *arguments)

    def join(thread: Any, timeout: float | None = None) -> None:
        scheduler, simulated = active(), thread.simulated
        assert scheduler is not None
        if not simulated.has_ended:
            deadline = None if timeout is None else scheduler.now + timeout
            scheduler.wait(lambda: simulated.has_ended, deadline)

    def is_alive(thread: Any) -> bool:
        simulated = getattr(thread, "simulated", None)
        return thread is threading.main_thread() if simulated is None else not simulated.has_ended

    threading._start_new_thread = start  # Python 3.11 and 3.12
    threading._start_joinable_thread = start  # Python 3.13
    threading.Thread.join = join
    threading.Thread.is_alive = is_alive


def _install_randomness() -> None:
    def urandom(size: int, real: Callable[[int], bytes] = os.urandom) -> bytes:
        return real(size) if _active is None else _active.entropy.randbytes(size)

    class Random(random.Random):
        def seed(self, a: Any = None, version: int = 2) -> None:
            super().seed(int.from_bytes(urandom(8)) if a is None else a, version)

    os.urandom = random._urandom = urandom
    random.Random = Random
