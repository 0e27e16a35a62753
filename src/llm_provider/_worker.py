"""One daemon thread that does blocking work in order, started when there is some.

Unlike a `ThreadPoolExecutor`'s, it still works while the interpreter ends, when clients close.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")
_Task: TypeAlias = "tuple[Callable[[], Any], Future[Any]]"


class Worker:
    """Runs functions one after the other in its own thread.

    >>> worker = Worker("example")
    >>> worker.submit(lambda: 2 + 2).result()
    4
    >>> worker.close()
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._tasks: queue.SimpleQueue[_Task | None] | None = None
        self._thread: threading.Thread | None = None

    def submit(self, work: Callable[[], T]) -> Future[T]:
        """Queue a function; the future holds what it returns or raises."""
        future: Future[T] = Future()
        with self._lock:
            if self._tasks is None:
                # A queue for each thread: the end of one must not end the next.
                self._tasks = queue.SimpleQueue()
                self._thread = threading.Thread(
                    target=_run, args=(self._tasks,), name=self._name, daemon=True
                )
                self._thread.start()
            self._tasks.put((work, future))
        return future

    def close(self, *, last: Callable[[], None] | None = None, wait: bool = True) -> None:
        """Finish what is queued and end the thread, if one was started; a later `submit` starts another.

        Args:
            last: What the thread does before it ends.
            wait: False to return at once.
        """
        with self._lock:
            tasks, self._tasks = self._tasks, None
            thread, self._thread = self._thread, None
        if tasks is None or thread is None:
            return
        if last is not None:
            tasks.put((last, Future()))
        tasks.put(None)
        if wait:
            thread.join()


def _run(tasks: queue.SimpleQueue[_Task | None]) -> None:
    while (task := tasks.get()) is not None:
        work, future = task
        if future.set_running_or_notify_cancel():
            try:
                future.set_result(work())
            except BaseException as error:
                future.set_exception(error)
        # Not kept while waiting for the next: results can be large.
        del task, work, future
