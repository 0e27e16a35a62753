"""The background event loop: one daemon thread per process, started by the first call that needs it.

All network work happens there, so there is one connection pool and one limiter for all threads and event
loops of the user. A forked child starts a loop of its own and shares nothing with its parent.

`Inbox` exists for speed alone. It saves 7 % of the CPU time of `acall` (532 µs per call; 579 µs with one
`call_soon_threadsafe` for each post) and 1 % of `call_many`. These are medians of the ratios of 7 alternating
runs of 2,000 calls, 32 at a time, and `python -m benchmarks compare` measures them against such a copy.
`post_with_others` saves another 3 to 4 % of `acall` and 7 % of a stream of 30 chunks. With 32 calls at a
time, the user's thread wakes 0.3 times for each call instead of 0.9, and 0.4 instead of 2 for each stream.
"""

import asyncio
import atexit
import contextlib
import functools
import selectors
import signal
import socket
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from concurrent import futures
from concurrent.futures import Future
from typing import Any, Generic, TypeAlias, TypeVar, TypeVarTuple

from . import clock, threads
from .forks import run_around_forks
from .notebooks import in_jupyter
from .warning import copy_context

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
Work: TypeAlias = Coroutine[Any, Any, T]
Post: TypeAlias = "tuple[Callable[..., object], tuple[object, ...]]"
"""A function that a loop is to call, and its arguments."""

_CLOSING_SECONDS = 3.0


_AT_ONCE = 4
"""Posted functions that run in one event-loop iteration. Without a limit, a hundred calls that begin together
would all be prepared before the first of them is sent. With 16, calls of 100,000 tokens stall the loop for
65 ms of CPU time, with 4 for 48 (`python -m benchmarks long_prompts`)."""


class Inbox:
    """Runs functions on an event loop for other threads: one wake-up serves all that are posted before.

    Waking a loop takes a system call and a change of threads, which take longer than most functions.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._posted: deque[Post] = deque()
        self._results: deque[Post] = deque()
        self._woken = False
        self.make_future = functools.partial(UncancellableFuture, loop=loop)

    def post(self, function: Callable[[*Ts], object], *arguments: *Ts) -> None:
        """Have the loop call a function, which must not raise; `RuntimeError` if the loop is closed."""
        self._posted.append((function, arguments))
        # `_empty` clears the mark before it reads the queue, so a function appended before that is found.
        if not self._woken:
            self._woken = True
            self.loop.call_soon_threadsafe(self._empty)

    def post_results(self, posts: Iterable[Post]) -> None:
        """`post` for several functions that end waits.

        They come first: else the answers of a batch would wait until all its calls have begun.
        """
        self._results.extend(posts)
        if not self._woken:
            self._woken = True
            self.loop.call_soon_threadsafe(self._empty)

    def post_with_others(self, function: Callable[..., object], *arguments: object) -> None:
        """Post at the end of the caller's loop iteration: one wake-up serves all that is posted in it.

        The caller's loop must not wait for this one. A loop that is closed loses what was posted, as nobody
        waits any more.
        """
        self._posted.append((function, arguments))
        if not self._woken:
            self._woken = True
            try:
                asyncio.get_running_loop().call_soon(self._wake)
            except RuntimeError:  # a thread without a loop has cancelled what this tells of
                self._wake()

    def _wake(self) -> None:
        with contextlib.suppress(RuntimeError):
            self.loop.call_soon_threadsafe(self._empty)

    def _empty(self) -> None:
        self._woken = False
        posted, results = self._posted, self._results
        for _ in range(_AT_ONCE):
            if not (first := results or posted):
                return
            function, arguments = first.popleft()
            function(*arguments)
        if (results or posted) and not self._woken:
            self._woken = True
            self.loop.call_soon(self._empty)


class BackgroundLoop:
    """An event loop running in a thread of its own."""

    def __init__(self, name: str) -> None:
        self.loop = asyncio.new_event_loop()
        if type(self.loop).time is asyncio.BaseEventLoop.time:
            # Its timers must fire also while a test has frozen the time.
            self.loop.time = clock.monotonic  # type: ignore[method-assign]
        self.inbox = _inboxes[self.loop] = Inbox(self.loop)
        self._stopped, self._of_parents = False, _of_parents
        self.thread = threads.start_thread(self._run, name)

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        while not self._stopped:
            # A task of the user's code that raises one of these stops the loop, on which others wait.
            with contextlib.suppress(SystemExit, KeyboardInterrupt):
                self.loop.run_forever()

    def stop(self) -> None:
        """Cancel all tasks, let them end, and close the loop."""
        with contextlib.suppress(Exception):
            asyncio.run_coroutine_threadsafe(_cancel_others(), self.loop).result(_CLOSING_SECONDS)
        self._stopped = True
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(_CLOSING_SECONDS)
        if not self.thread.is_alive():
            self.loop.close()


async def _cancel_others() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await asyncio.get_running_loop().shutdown_asyncgens()


class LateLoop:
    """A background loop that is started when it is first needed. A forked child starts one of its own."""

    def __init__(self, name: str) -> None:
        self.started: BackgroundLoop | None = None
        self._name, self._lock = name, threading.Lock()
        run_around_forks(after_in_child=self._forget_parent)

    def start(self) -> BackgroundLoop:
        with self._lock:
            if self.started is None:
                self.started = BackgroundLoop(self._name)
            return self.started

    def runs_here(self) -> bool:
        """Whether this is its thread, where a wait for it would last for ever."""
        return self.started is not None and threading.get_ident() == self.started.thread.ident

    def stop(self) -> None:
        background, self.started = self.started, None
        if background is not None:
            background.stop()

    def _forget_parent(self) -> None:
        leave_to_parent(self.started)
        self.started, self._lock = None, threading.Lock()


_of_requests = LateLoop("llm_provider-loop")
_closers: list[Callable[[], None]] = []


def current() -> BackgroundLoop:
    """The loop of the process. It is started if there is none; `RuntimeError` at the end of the process."""
    background = _of_requests.started
    if background is None and not threading.main_thread().is_alive():
        raise RuntimeError(
            "this process makes its first call after its main thread has ended, when Python starts "
            "no more work: join your threads, or make a first call in the main thread"
        )
    return background or _of_requests.start()


Settle: TypeAlias = Callable[[T | BaseException], object]
"""Called on the loop with the result or the exception of a task. It must not raise."""

Cancel: TypeAlias = "Callable[[asyncio.Task[Any]], object]"
"""Cancels a task, on the loop. The task may continue if others need its result."""

cancel_task: Cancel = asyncio.Task.cancel


class BackgroundTask(Generic[T]):
    """A task with the context variables of the thread that made it, on the background loop or another one."""

    __slots__ = ("_cancel", "_context", "_coroutine", "_inbox", "_settle", "_task")

    def __init__(
        self, coroutine: Work[T], settle: Settle[T], cancel: Cancel = cancel_task, inbox: Inbox | None = None
    ) -> None:
        self._coroutine = coroutine
        self._context = copy_context()
        self._settle: Settle[T] | None = settle
        self._cancel = cancel
        try:
            self._inbox = current().inbox if inbox is None else inbox
        except BaseException:  # Ctrl-C while the loop starts: Python warns of a coroutine that nobody ran
            coroutine.close()
            raise
        self._task: asyncio.Task[None] | None = None

    def start(self) -> "BackgroundTask[T]":
        """Have the loop run it, from any thread."""
        self._inbox.post(self._start)
        return self

    def _start(self) -> None:
        if self._settle is None:
            return
        self._task = self._inbox.loop.create_task(self._run(), context=self._context)

    async def _run(self) -> None:
        outcome: T | BaseException
        try:
            outcome = await self._coroutine
        except BaseException as error:  # given to the thread that waits
            outcome = error
        try:
            self._finish(outcome)
        finally:
            # The traceback of an exception refers to this frame, which must not refer back to it.
            del outcome

    def _finish(self, outcome: T | BaseException) -> None:
        settle, self._settle = self._settle, None
        if settle is not None:
            settle(outcome)

    def cancel(self) -> None:
        """Cancel the task from any thread. It has no effect on one that has ended."""
        with contextlib.suppress(RuntimeError):  # the loop is closed, so the task has ended
            # Not by the inbox, which may hold many tasks that would all be started before.
            self._inbox.loop.call_soon_threadsafe(self._cancel_here)

    def _cancel_here(self) -> None:
        if self._settle is None:
            return
        if self._task is None:
            self._close()
        else:
            self._task.add_done_callback(self._close)
            self._cancel(self._task)
        self._finish(asyncio.CancelledError())

    def _close(self, _: asyncio.Task[None] | None = None) -> None:
        # A task that is cancelled before its first step has not started the coroutine.
        self._coroutine.close()


def submit(
    coroutine: Work[T],
    cancel: Cancel = cancel_task,
    inbox: Inbox | None = None,
    future: Future[T] | None = None,
) -> Future[T]:
    """Run a coroutine on the loop of `inbox`, or on ours. Cancelling the future cancels it, by `cancel`."""
    future = Future() if future is None else future
    task = BackgroundTask(coroutine, functools.partial(_settle, future), cancel, inbox)
    future.add_done_callback(lambda waiter: task.cancel() if waiter.cancelled() else None)
    task.start()
    return future


def _settle(future: Future[T] | asyncio.Future[T], outcome: T | BaseException) -> None:
    if isinstance(outcome, asyncio.CancelledError):
        future.cancel()
    elif future.set_running_or_notify_cancel() if isinstance(future, Future) else not future.done():
        if isinstance(outcome, BaseException):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)


class UncancellableFuture(asyncio.Future[T]):
    """A future that cannot be cancelled: a task that awaits it is cancelled once the future is done.

    `asyncio.shield` and a second wait would do the same in two more iterations of the event loop.
    """

    def cancel(self, msg: object = None) -> bool:
        return False


async def run(coroutine: Work[T], cancel: Cancel = cancel_task, inbox: Inbox | None = None) -> T:
    """`submit` for the caller's own event loop. Cancelling the caller cancels the coroutine."""
    try:
        here = inbox_here()
    except RuntimeError:
        coroutine.close()
        raise
    future: asyncio.Future[T] = here.loop.create_future()
    hand_over = functools.partial(here.post_with_others, _settle, future)
    task = BackgroundTask(coroutine, hand_over, cancel, inbox).start()
    try:
        return await future
    except asyncio.CancelledError:
        task.cancel()
        raise


_inboxes: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Inbox] = weakref.WeakKeyDictionary()
"""One inbox for each event loop: the background loop, and the user's loops that await a task."""


def running_loop() -> asyncio.AbstractEventLoop:
    """The event loop that runs; a `RuntimeError` says what to write where there is none of asyncio's."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        raise RuntimeError(
            "asynchronous calls need a running event loop of asyncio: under trio, write "
            "await trio.to_thread.run_sync(call, model, prompt); elsewhere, call() without await"
        ) from None


def inbox_here() -> Inbox:
    """The inbox of the event loop that is running."""
    here = running_loop()
    inbox = _inboxes.get(here)
    if inbox is None:
        inbox = _inboxes[here] = Inbox(here)
        wake_on_signals(here)
    return inbox


_waking: list[socket.socket] = []
"""The sockets by which signals wake a loop. They stay open as long as the process."""


def wake_on_signals(loop: asyncio.AbstractEventLoop) -> None:
    """Have signals wake an event loop, if it is the loop of a Jupyter kernel and nothing else wakes it.

    On SIGINT, ipykernel cancels the task of the cell by `call_soon`, which does not wake a loop that waits
    for sockets. A cell that awaits an answer would end at the loop's next event, which may be the answer.
    """
    if not in_jupyter() or _waking or threading.current_thread() is not threading.main_thread():
        return
    woken, waker = socket.socketpair()
    woken.setblocking(False)
    waker.setblocking(False)
    with contextlib.suppress(NotImplementedError):
        # Windows' default loop has no readers. It wakes on signals by itself.
        loop.add_reader(woken, _drain, woken)
        before = signal.set_wakeup_fd(waker.fileno(), warn_on_full_buffer=False)
        if before == -1:
            _waking.extend((woken, waker))
            return
        signal.set_wakeup_fd(before)
        loop.remove_reader(woken)
    woken.close()
    waker.close()


def _drain(woken: socket.socket) -> None:
    with contextlib.suppress(BlockingIOError):
        woken.recv(4096)


def wait(coroutine: Work[T], cancel: Cancel = cancel_task, inbox: Inbox | None = None) -> T:
    """Block until a coroutine has ended on the loop. An interrupt (Ctrl-C) at any moment cancels it."""
    future: Future[T] = Future()
    try:
        submit(coroutine, cancel, inbox, future)
        while sys.platform == "win32" and not future.done():
            futures.wait((future,), 0.2)  # Ctrl-C ends no wait without a timeout there
        return future.result()
    finally:
        future.cancel()


def close_on_loop(closer: Callable[[], Work[None]], *, wait: bool = True) -> None:
    """Run a closing coroutine on the loop. Without a loop there is nothing to close."""
    if _of_requests.started is not None:
        closing = submit(closer())
        if wait:
            with contextlib.suppress(TimeoutError):
                closing.result(_CLOSING_SECONDS)


def refuse_own_thread(name: str) -> None:
    """Raise `RuntimeError` on the thread of the loop, where waiting for the loop would block for ever."""
    if _of_requests.runs_here():
        raise RuntimeError(
            f"{name}() was called on llm_provider's own event loop thread (from a callback?), where it "
            "would wait for itself; call it from your own thread or task"
        )


def at_exit(closer: Callable[[], None]) -> None:
    """Have `closer` called when the interpreter ends, while the loop still runs."""
    if closer not in _closers:
        _closers.append(closer)


def _close() -> None:
    for closer in reversed(_closers):
        with contextlib.suppress(Exception):
            closer()
    _of_requests.stop()


def leave_to_parent(background: BackgroundLoop | None) -> None:
    """In a forked child, which does not have its thread: have nothing here reach the parent's sockets."""
    loop = None if background is None else background.loop
    keep_for_parent((background, getattr(loop, "_selector", None)))
    if isinstance(loop, asyncio.SelectorEventLoop):  # what its selector watches is shared with the parent
        loop._selector = selectors.SelectSelector()  # type: ignore[attr-defined]  # noqa: SLF001


def keep_for_parent(shared: object) -> None:
    """In a forked child, never finalize an object of its parent, whose sockets that would close."""
    _of_parents.append(shared)


_of_parents: list[object] = []
"""The frames of the loop's thread refer to it. Python never frees them in a child, not even at its end."""


atexit.register(_close)
