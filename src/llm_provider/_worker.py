"""One daemon thread that does blocking work in order, started when there is some.

Unlike a `ThreadPoolExecutor`'s, it still works while the interpreter ends, when clients close.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


class Worker:
    """Runs functions one after the other in its own thread.

    >>> worker = Worker("example")
    >>> worker.submit(lambda: 2 + 2).result()
    4
    >>> worker.close()
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._tasks: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def submit(self, work: Callable[[], T]) -> Future[T]:
        """Queue a function; the future holds what it returns or raises."""
        future: Future[T] = Future()
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()
            self._tasks.put((work, future))
        return future

    def close(self, *, wait: bool = True) -> None:
        """Finish what is queued and end the thread; a later `submit` starts another."""
        with self._lock:
            thread, self._thread = self._thread, None
            if thread is not None:
                self._tasks.put(None)
        if thread is not None and wait:
            thread.join()

    def _run(self) -> None:
        while (task := self._tasks.get()) is not None:
            work, future = task
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(work())
                except BaseException as error:
                    future.set_exception(error)
            # Not kept while waiting for the next: results can be large.
            del task, work, future
