"""The beginning and the end of what a client holds open: its connections and its files."""

from __future__ import annotations

import atexit
import functools
import os
import threading
import weakref
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from .. import doors
from ..errors import RequestError
from ..money.ledger_file import LedgerFile
from ..money.pricing import PriceTable
from ..requests.checks import flag
from ..requests.routing import NO_HOSTS, Route
from ..runtime.files import check_path
from ..runtime.forks import reset_in_child
from ..store.response_cache import ResponseCache

if TYPE_CHECKING:
    from ..._features.second_level.settings import SecondLevel
    from ..journey.engine import Engine

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
                from ..runtime import event_loop

                # The loop ends before this module's exit function is called, so it closes the clients.
                event_loop.at_exit(_close_all)
                closing = weakref.finalize(self, event_loop.close_on_loop, self._engine.close, wait=False)
                closing.atexit = False

    def after_fork(self) -> None:
        self.cache.after_fork()
        self._engine.after_fork()
        self._starting = threading.Lock()

    def close(self) -> None:
        if not self._engine.closed:
            self._engine.closed = True
            self._close_engine()
            self._close_files()

    async def aclose(self) -> None:
        if not self._engine.closed:
            self._engine.closed = True
            import asyncio

            try:
                asyncio.get_running_loop()
            except RuntimeError:  # in a child that was forked within a coroutine, no loop runs
                self._close_engine()
            else:
                await asyncio.to_thread(self._close_engine)
            # Files of sqlite are closed by the thread that opened them. It takes milliseconds.
            self._close_files()

    def _close_files(self) -> None:
        self.cache.close()
        if self._ledger_file is not None:
            self._ledger_file.close()

    def _close_engine(self) -> None:
        if self._started:
            from ..runtime import event_loop

            event_loop.close_on_loop(self._engine.close)


def _close_all() -> None:
    for lifetime in list(_lifetimes):
        lifetime.close()


atexit.register(_close_all)
reset_in_child(_lifetimes, Lifetime.after_fork)


Path = str | os.PathLike[str]


def prices_of(path: Path | None, hosts: Mapping[str, Route] = NO_HOSTS) -> Callable[[], PriceTable]:
    """Returns the price table, with the prices of the user's own hosts. The first use reads it.

    The user's own file is read at once: a `RequestError` comes before an answer is paid for.
    """
    own = None if path is None else check_path("prices", path)

    @functools.cache
    def table() -> PriceTable:
        try:
            loaded = PriceTable.load(overrides=own)
        except (OSError, ValueError) as error:
            raise RequestError(f"prices: {error}; docs/prices.md has the columns of such a file") from None
        loaded.replace_rows(row for route in hosts.values() if route.host for row in route.host.price_rows())
        return loaded

    if own is not None:
        table()
    return table


def ledger_of(path: Path | None) -> LedgerFile | None:
    """The file of the ledger; by default that of `LLM_PROVIDER_LEDGER`, else None."""
    if path is not None:
        return LedgerFile(check_path("ledger", path))
    named = os.environ.get("LLM_PROVIDER_LEDGER", "").strip()
    return LedgerFile(named, "LLM_PROVIDER_LEDGER") if named else None


def cache_of(
    level: SecondLevel | None, directory: Path | None, saved: Callable[[], float], *, shared: bool | None
) -> ResponseCache:
    if shared is not None:
        flag("cache_shared", shared)
    directory = None if directory is None else check_path("cache_dir", directory)
    if level is None:
        return ResponseCache(directory, saved=saved, shared=shared)

    return doors.two_level_cache.TwoLevelCache(level, directory, saved=saved, shared=shared)
