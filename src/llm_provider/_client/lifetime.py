"""The beginning and the end of what a client holds open: its connections and its files."""

from __future__ import annotations

import atexit
import threading
import weakref
from typing import TYPE_CHECKING

from .._runtime.forks import reset_in_child

if TYPE_CHECKING:
    from .._cache.response_cache import ResponseCache
    from .._calls.lifecycle.engine import Engine
    from .._money.ledger_file import LedgerFile

_lifetimes: weakref.WeakSet[Lifetime] = weakref.WeakSet()
"""Those of every client that may have open files or connections."""


class Lifetime:
    """Opens and closes what a client and its variants share."""

    def __init__(self, engine: Engine, cache: ResponseCache, ledger_file: LedgerFile | None) -> None:
        self._engine, self.cache, self._ledger_file = engine, cache, ledger_file
        self._started, self._starting = False, threading.Lock()
        _lifetimes.add(self)
        # For a client that is dropped without `close`. The thread that drops it must not wait.
        weakref.finalize(self, cache.close, wait=False).atexit = False

    def start(self) -> None:
        """Prepare the end of the process, before the first call that has to be sent."""
        with self._starting:
            if not self._started:
                self._started = True
                from .._runtime import event_loop

                # The loop ends before this module's exit function is called, so it closes the clients.
                event_loop.at_exit(_close_all)
                closing = weakref.finalize(self, event_loop.close_on_loop, self._engine.close, wait=False)
                closing.atexit = False

    def close(self) -> None:
        """Close connections and files."""
        if not self._engine.closed:
            self._engine.closed = True
            self._close_engine()
            self._close_files()

    async def aclose(self) -> None:
        """`close`, awaited."""
        if not self._engine.closed:
            self._engine.closed = True
            import asyncio

            await asyncio.to_thread(self._close_engine)
            # Files of sqlite are closed by the thread that opened them. It takes milliseconds.
            self._close_files()

    def _close_files(self) -> None:
        self.cache.close()
        if self._ledger_file is not None:
            self._ledger_file.close()

    def _close_engine(self) -> None:
        if self._started:
            from .._runtime import event_loop

            event_loop.close_on_loop(self._engine.close)


def _close_all() -> None:
    for lifetime in list(_lifetimes):
        lifetime.close()


atexit.register(_close_all)
reset_in_child(_lifetimes, lambda lifetime: lifetime.cache.after_fork())
