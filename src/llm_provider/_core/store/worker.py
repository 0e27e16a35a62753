"""A worker thread for blocking disk work, and a queue that hands it work in batches.

With 64 to 500 writes in flight, batches save 60 to 90 µs of processor time per stored answer, about 3 % of a
call, compared with one task, one transaction and one wake-up of the event loop per answer. With 32 in
flight, batches are small unless they wait a moment for more. What costs most is not SQLite's 10 µs for a row
but threads that wait for Python's lock. So a batch waits where many items arrive, which changes threads once
instead of twice for each call that is stored, and takes 10 to 19 % of its CPU time, with 32 and with 256 in
flight. (One statement for all rows of a shard, or no check of the file's identity, saves nothing.) Where the
processor has time, nothing waits: at 475 answers a second a wait of 2 to 5 ms was most of the delay of a
stored answer.

Unlike the threads of a `ThreadPoolExecutor`, the worker still accepts work while the interpreter ends, when
clients close.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

from ..runtime import clock, threads

if TYPE_CHECKING:
    import asyncio

    from ..runtime.event_loop import Inbox, Post

T = TypeVar("T")
ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")
_Waiting: TypeAlias = "tuple[ItemT, Callable[[ResultT], object], Inbox | None]"
"""An item, what gets its result, and the inbox of the event loop where that is called, if it is on one."""


_BUSY = 1000.0
"""Items a second. Below this rate no batch waits for more. At twice the rate it waits `linger` twice."""

_LONGEST = 5.0
"""The longest wait, as a multiple of `linger`."""

_MEMORY = 0.05
"""Seconds. An older arrival hardly counts in the rate."""


class Worker:
    """Runs functions one after the other in a daemon thread, which the first of them starts."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._tasks: queue.SimpleQueue[Callable[[], object] | None] | None = None
        self._thread: threads.Thread | None = None

    def submit(self, work: Callable[[], T]) -> Future[T]:
        """Queue a function. The future gets its result or its exception."""
        future: Future[T] = Future()
        self.post(partial(_settle, future, work))
        return future

    def post(self, work: Callable[[], object]) -> None:
        """Queue a function that must not raise."""
        with self._lock:
            if self._tasks is None:
                # A queue for each thread: the None that ends one thread must not end the next.
                self._tasks = queue.SimpleQueue()
                self._thread = threads.start_thread(partial(_run, self._tasks), self._name)
            self._tasks.put(work)

    def close(self, *, last: Callable[[], None] | None = None, wait: bool = True) -> bool:
        """Finish the queued work, run `last` and end the thread; False, and no `last`, if there is none."""
        with self._lock:
            tasks, self._tasks = self._tasks, None
            thread, self._thread = self._thread, None
        if tasks is None or thread is None:
            return False
        if last is not None:
            tasks.put(partial(_settle, Future(), last))
        tasks.put(None)
        if wait:
            thread.join()
        return True


def start_timer(seconds: float, worker: Worker, work: Callable[[], object]) -> threads.Timer:
    """Submit a function to a worker after some seconds, unless the timer is cancelled before."""
    return threads.start_timer(seconds, partial(worker.submit, work))


def _run(tasks: queue.SimpleQueue[Callable[[], object] | None]) -> None:
    while (work := tasks.get()) is not None:
        work()
        # Its result can be large, and must not be kept while this waits for the next one.
        del work


def _settle(future: Future[T], work: Callable[[], T]) -> None:
    if future.set_running_or_notify_cancel():
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)


class BatchQueue(Generic[ItemT, ResultT]):
    """Collects the items that callers submit while a worker is busy, and has them done as one batch.

    Waking a thread takes longer than a write, and waking an event loop longer than a read. So a batch is one
    task of the worker, and each event loop is woken once for all of its results. `work` turns items into as
    many results, in order, and must not raise. A batch waits `linger` seconds for more items where many
    arrive, and longer where more do.
    """

    def __init__(
        self, worker: Worker, work: Callable[[list[ItemT]], Sequence[ResultT]], linger: float = 0.0
    ) -> None:
        self._worker = worker
        self._work = work
        self._linger = linger
        self._lock = threading.Lock()
        self._items: list[_Waiting[ItemT, ResultT]] = []
        self._handed_over = False
        self._under_way = 0
        self._taken_at = self._rate = 0.0
        """When the items of the last batch were taken, and how many came in a second until then."""

    def __len__(self) -> int:
        return len(self._items) + self._under_way

    def submit(self, item: ItemT) -> Future[ResultT]:
        """Submit an item from any thread. The future cannot be cancelled."""
        future: Future[ResultT] = Future()
        future.set_running_or_notify_cancel()
        self._add((item, future.set_result, None))
        return future

    def submit_from(self, inbox: Inbox, item: ItemT) -> asyncio.Future[ResultT]:
        """Submit an item from the thread of an inbox's event loop. The future cannot be cancelled."""
        future: asyncio.Future[ResultT] = inbox.make_future()
        self._add((item, future.set_result, inbox))
        return future

    def drain(self) -> None:
        """Do all items now. Only the worker's own thread may call it."""
        if self._items:
            self._run()

    def flush(self) -> None:
        """Wait until all items submitted before are done."""
        if len(self):
            self._worker.submit(self._run).result()

    def _add(self, waiting: _Waiting[ItemT, ResultT]) -> None:
        self._items.append(waiting)
        # `_run` clears the mark before it takes the items, so it finds one that was appended before that.
        if not self._handed_over:
            self._handed_over = True
            self._worker.post(self._run)

    def _run(self) -> None:
        if self._linger and self._rate > _BUSY and clock.monotonic() - self._taken_at < _MEMORY:
            clock.sleep(self._linger * min(self._rate / _BUSY, _LONGEST))
        with self._lock:  # a thread that is being closed may still run
            self._handed_over = False
            self._under_way = count = len(self._items)
            batch = self._items[:count]
            del self._items[:count]  # other threads only append
        if not batch:
            return  # a task of `flush` has done them
        if self._linger:
            now = clock.monotonic()
            elapsed, self._taken_at = max(now - self._taken_at, 1e-4), now
            self._rate += (len(batch) / elapsed - self._rate) * min(elapsed / _MEMORY, 1.0)
        results = self._work([item for item, _, _ in batch])
        self._under_way = 0
        posts: dict[Inbox, list[Post]] = {}
        for (_, settle, inbox), result in zip(batch, results, strict=True):
            if inbox is None:
                settle(result)
            else:
                posts.setdefault(inbox, []).append((settle, (result,)))
        for inbox, each in posts.items():
            with contextlib.suppress(RuntimeError):  # the loop is closed, and nobody waits any more
                inbox.post_results(each)
