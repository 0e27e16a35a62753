"""The background event loop: one daemon thread per process, started by the first call that needs it.

All network work happens there, so there is one connection pool and one limiter however many threads and
event loops the user has. A forked child starts its own; nothing is shared with the parent.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")

_CLOSING_SECONDS = 3.0


class BackgroundLoop:
    """An event loop running in a thread of its own."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self._run, name="llm_provider-loop", daemon=True)
        self.thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()

    def stop(self) -> None:
        """Cancel what runs, let it end, and close the loop."""
        with contextlib.suppress(Exception):
            asyncio.run_coroutine_threadsafe(_cancel_others(), self.loop).result(_CLOSING_SECONDS)
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


_lock = threading.Lock()
_current: BackgroundLoop | None = None
_closers: list[Callable[[], None]] = []


def current() -> BackgroundLoop:
    """The process's loop, started if there is none."""
    global _current
    with _lock:
        if _current is None:
            _current = BackgroundLoop()
        return _current


def submit(coroutine: Coroutine[Any, Any, T]) -> Future[T]:
    """Run a coroutine on the loop, with the caller's context variables; cancelling the future cancels it."""
    return asyncio.run_coroutine_threadsafe(coroutine, current().loop)


def wait(future: Future[T]) -> T:
    """Block until a submitted coroutine has ended; interrupting the wait (Ctrl-C) cancels it."""
    try:
        return future.result()
    finally:
        future.cancel()


def close_on_loop(closer: Callable[[], Coroutine[Any, Any, None]], *, wait: bool = True) -> None:
    """Run a closing coroutine on the loop, if there is one to have opened something.

    Args:
        closer: Closes what lives on the loop.
        wait: False to return at once.
    """
    if _current is not None:
        closing = submit(closer())
        if wait:
            with contextlib.suppress(TimeoutError):
                closing.result(_CLOSING_SECONDS)


def refuse_own_thread(name: str) -> None:
    """Raise if called on the loop's own thread, where waiting for the loop would never end.

    Raises:
        RuntimeError: this is the loop's thread.
    """
    if _current is not None and threading.get_ident() == _current.thread.ident:
        raise RuntimeError(
            f"{name}() was called on llm_provider's own event loop thread (from a callback?), where it "
            "would wait for itself; call it from your own thread or task"
        )


def at_exit(closer: Callable[[], None]) -> None:
    """Have `closer` called when the interpreter ends, while the loop still runs."""
    _closers.append(closer)


def _close() -> None:
    global _current
    for closer in reversed(_closers):
        with contextlib.suppress(Exception):
            closer()
    background, _current = _current, None
    if background is not None:
        background.stop()


def _forget_parent() -> None:
    # The parent's thread does not exist here and its loop must not be touched: its sockets are shared.
    global _lock, _current, _abandoned
    _abandoned = _current
    _lock, _current = threading.Lock(), None


_abandoned: BackgroundLoop | None = None
"""Kept so that the child never finalizes, and so never closes, what belongs to its parent."""

atexit.register(_close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_parent)
