"""The disk cache: answers by key. It never fails a call."""

from __future__ import annotations

import contextlib
import os
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from .storage.entry import Asked, Entry, kind_of, packed, unpacked
from .storage.worker import BatchQueue, Worker

if TYPE_CHECKING:
    import asyncio
    from pathlib import Path

    from .storage.archive import Imported
    from .storage.diff import Explanation
    from .storage.maintenance import Verification
    from .storage.store import Store

T = TypeVar("T")

_PATIENCE = 5.0
_LINGER = 0.002
_MOST_UNWRITTEN_BYTES = 64_000_000
_MOST_AHEAD_BYTES = 4_000_000
_RETRY_AFTER = 1.0
_LONGEST_RETRY = 30.0


class CacheWarning(UserWarning):
    """The cache cannot be used or written as it should; calls go on all the same."""


@dataclass(frozen=True, slots=True)
class CacheStatistics:
    """What a cache did in this process, and what it holds.

    Args:
        hits: Answers found.
        misses: Answers looked for in vain.
        writes: Answers stored.
        pending: Answers that wait to be stored, those kept in memory while the disk is in the way included.
        entries: Answers on disk.
        bytes: Size of the files.
        saved: USD that the hits would have cost, at today's prices; those of unknown price are not counted.
    """

    hits: int
    misses: int
    writes: int
    pending: int
    entries: int
    bytes: int
    saved: float


def default_directory() -> Path:
    """`LLM_PROVIDER_CACHE_DIR`, else the user's cache directory of the platform."""
    from pathlib import Path

    chosen = os.environ.get("LLM_PROVIDER_CACHE_DIR", "").strip()
    if chosen:
        return Path(chosen).expanduser()
    import platformdirs

    return Path(platformdirs.user_cache_dir("llm_provider", appauthor=False))


class ResponseCache:
    """Answers by key, on disk, in files that are opened on first use.

    Reading is done by whoever asks, or for event loops by a thread of its own; writing by another thread,
    so that a disk which keeps a writer waiting keeps no reader waiting. What cannot be written is kept in
    memory, tried again, and told.

    Args:
        directory: Where; default `LLM_PROVIDER_CACHE_DIR`, else the user's cache directory of the platform.
        patience: Seconds that writing waits for the locks of other processes.
    """

    def __init__(
        self, directory: str | os.PathLike[str] | None = None, *, patience: float = _PATIENCE
    ) -> None:
        self._given = directory
        self._patience = patience
        # What hits would have cost is known to whoever knows their prices.
        self.saved: Callable[[], float] = float
        self._reset()

    def _reset(self) -> None:
        self._opening = threading.Lock()
        self._store: Store | None = None
        self._refused = False
        self._reader = Worker("llm_provider-cache-reader")
        self._writer = Worker("llm_provider-cache")
        self._reads: BatchQueue[str, Entry | None] = BatchQueue(self._reader, self._read_all)
        self._writes: BatchQueue[tuple[str, Entry], bool] = BatchQueue(self._writer, self._write_all, _LINGER)
        self._unwritten: dict[str, Entry] = {}
        self._unwritten_bytes = 0
        self._retry_after = _RETRY_AFTER
        self._retrying: threading.Timer | None = None
        self._lost = 0
        self._hits = self._misses = self._written = 0
        self._warned: set[str] = set()

    def after_fork(self) -> None:
        """Forget the parent's files and threads; the child opens its own. The parent writes what it has."""
        self._abandoned = (self._store, self._reader, self._writer)
        self._reset()

    @property
    def directory(self) -> Path:
        """Where the entries are."""
        from pathlib import Path

        return Path(self._given).expanduser() if self._given is not None else default_directory()

    @property
    def lease_directory(self) -> Path | None:
        """Where processes tell each other what they ask; None on a network file system."""
        from .storage.store import is_network

        return None if is_network(self.directory) else self.directory / "leases"

    # --- reading -----------------------------------------------------------------------------------------

    def get(self, key: str, ahead: bytes | None = None) -> Entry | None:
        """The entry of a key; None where there is none or it cannot be read.

        Args:
            key: The key.
            ahead: What `read_ahead` has found under it.
        """
        entry = self._unwritten.get(key) if self._unwritten else None
        if entry is None and ahead is not None:
            entry = unpacked(key, ahead)
        if entry is None:
            entry = self._read(key)
        if entry is None:
            self._misses += 1
        else:
            self._hits += 1
        return entry

    def peek(self, key: str) -> Entry | None:
        """`get` for those who only want to know: it is no hit and no miss."""
        return self._unwritten.get(key) or self._read(key)

    def recent(self, asked: Asked, count: int) -> list[tuple[Entry, dict[str, Any] | None]]:
        """Of the `count` newest answers to questions like one, those of its model and server.

        With each comes the payload that it answers, None where that is not stored in full. Empty where the
        cache cannot be read.
        """
        from .storage.maintenance import recent

        try:
            return self._care(lambda store: recent(store, asked, count))
        except Exception as error:  # as in `_read`
            self._failed("read", error)
            return []

    def read_ahead(self, keys: Sequence[str]) -> dict[str, bytes]:
        """What is stored under keys that are about to be asked for, as far as it can be read at once.

        Together they take half of what they take one by one. Only `get`, which is given it, looks at it.
        """
        try:
            store = self._store or self._opened()
            return {} if store is None else store.read_many(keys, _MOST_AHEAD_BYTES)
        except Exception:  # `get` meets it as well, and tells
            return {}

    def get_soon(self, key: str, loop: asyncio.AbstractEventLoop) -> asyncio.Future[Entry | None]:
        """`get`, asked on an event loop's own thread, which does not wait for the disk.

        The loop is woken once for many entries.
        """
        return self._reads.submit_from(loop, key)

    def _read_all(self, keys: list[str]) -> list[Entry | None]:
        return [self.get(key) for key in keys]

    def _read(self, key: str) -> Entry | None:
        try:
            store = self._store or self._opened()
            value = None if store is None else store.read(key)
            return None if value is None else unpacked(key, value)
        except Exception as error:  # whatever a broken disk or file raises must not fail a call
            self._failed("read", error)
            return None

    # --- writing -----------------------------------------------------------------------------------------

    def put(self, key: str, entry: Entry) -> Future[bool]:
        """Store an entry, in a thread; the future tells when it is on disk, or that it is not yet."""
        return self._writes.submit((key, entry))

    def put_soon(self, key: str, entry: Entry, loop: asyncio.AbstractEventLoop) -> asyncio.Future[bool]:
        """`put`, asked on an event loop's own thread. The loop is woken once for many entries.

        The future cannot be cancelled: a task that is, while it waits, learns it when the entry is stored.
        """
        return self._writes.submit_from(loop, (key, entry))

    def _write_all(self, entries: list[tuple[str, Entry]]) -> list[bool]:
        failures = self._failures_of_writing(dict(entries), self._patience)
        return [key not in failures for key, _ in entries]

    def _failures_of_writing(self, entries: dict[str, Entry], patience: float) -> set[str]:
        """Store what can be stored; the rest is kept in memory and its keys are returned."""
        try:
            store = self._store or self._opened()
            if store is None:
                return set(entries)
            rows = [(key, packed(key, entry), _tag(entry.asked)) for key, entry in entries.items()]
            failures = store.write(rows, patience)
        except Exception as error:  # as in `_read`
            failures = dict.fromkeys(entries, error)
            self._failed("write", error)
            if self._refused:
                return set(entries)
        self._written += len(entries) - len(failures)
        if failures or self._unwritten:
            self._keep(entries, failures)
        return set(failures)

    def _keep(self, entries: dict[str, Entry], failures: dict[str, Exception]) -> None:
        for key, entry in entries.items():
            kept = self._unwritten.pop(key, None)
            self._unwritten_bytes -= 0 if kept is None else len(kept.body)
            if key in failures:
                self._unwritten[key] = entry
                self._unwritten_bytes += len(entry.body)
        while self._unwritten_bytes > _MOST_UNWRITTEN_BYTES:
            oldest = next(iter(self._unwritten))
            self._unwritten_bytes -= len(self._unwritten.pop(oldest).body)
            self._lost += 1
        for error in failures.values():
            self._failed("write", error)
        if not self._unwritten:
            self._retry_after = _RETRY_AFTER
        elif self._retrying is None and not self._refused:
            self._retrying = threading.Timer(self._retry_after, self._retry)
            self._retrying.daemon = True
            self._retrying.start()
            self._retry_after = min(2 * self._retry_after, _LONGEST_RETRY)

    def _retry(self) -> None:
        def write_again() -> None:
            self._retrying = None
            self._failures_of_writing(dict(self._unwritten), patience=0.0)

        self._writer.submit(write_again)

    # --- the cache itself --------------------------------------------------------------------------------

    def stats(self) -> CacheStatistics:
        """What the cache did in this process, and what it holds."""
        entries = size = 0
        try:
            store = self._store or self._opened()
            if store is not None:
                entries, size = store.count(), store.bytes_on_disk()
        except Exception as error:  # as in `_read`
            self._failed("read", error)
        return CacheStatistics(
            hits=self._hits,
            misses=self._misses,
            writes=self._written,
            pending=len(self._writes) + len(self._unwritten),
            entries=entries,
            bytes=size,
            saved=self.saved(),
        )

    def __len__(self) -> int:
        """How many answers are on disk; 0 where that cannot be told."""
        return self.stats().entries

    def __bool__(self) -> bool:
        # An empty cache is a cache.
        return True

    def verify(self) -> Verification:
        """Read every answer and compare it with its checksum. True, as a condition, if all is whole.

        Raises:
            OSError: the cache cannot be read.
        """
        from .storage.maintenance import verify

        return self._care(verify)

    def prune(
        self, *, older_than: float | None = None, model: str | None = None, dry_run: bool = False
    ) -> int:
        """Remove the answers that fit every condition; nothing is ever removed otherwise.

        Args:
            older_than: Seconds since the original call.
            model: The model, as it was asked for or as its provider names it.
            dry_run: Only count them.

        Returns:
            How many fit.

        Raises:
            RequestError: there is no condition.
            OSError: the cache cannot be read or written.
        """
        from .storage.maintenance import prune

        return self._care(lambda store: prune(store, older_than=older_than, model=model, dry_run=dry_run))

    def export(self, path: str | os.PathLike[str]) -> int:
        """Write all answers to one file of JSON lines: the same answers are the same bytes.

        Args:
            path: The file; it appears, or is replaced, when it is complete.

        Returns:
            How many answers it has.

        Raises:
            OSError: the file cannot be written, or the cache not be read.
        """
        from .storage.archive import write_archive

        return self._care(lambda store: write_archive(store, path))

    def load(self, path: str | os.PathLike[str]) -> Imported:
        """Add the answers of an exported file. Those that are here already stay as they are.

        Args:
            path: The file. All of it is checked before anything is added.

        Raises:
            RequestError: it is not an export, of another version, or damaged; it says in which line.
            OSError: the file cannot be read, or the cache not be written.
        """
        from .storage.archive import read_archive

        return self._care(lambda store: read_archive(store, path))

    def explain_miss(self, asked: Asked) -> Explanation | None:
        """The stored question that is nearest to one without an answer, and where the two differ.

        Args:
            asked: The question.

        Returns:
            None if nothing that was asked of the same provider and endpoint is stored.

        Raises:
            OSError: the cache cannot be read.
        """
        from .storage.maintenance import explain

        return self._care(lambda store: explain(store, asked))

    def _care(self, work: Callable[[Store], T]) -> T:
        """Do what a user asked for, which may fail, after everything before it is written."""
        import sqlite3

        self._writes.flush()
        store = self._store or self._opened()
        if store is None:
            raise PermissionError(f"the cache in {self.directory} cannot be opened")
        try:
            return work(store)
        except sqlite3.Error as error:
            raise OSError(f"the cache in {self.directory} cannot be used: {error}") from None

    def close(self, *, wait: bool = True) -> None:
        """Finish all writes and close the files; the cache opens again when used.

        Args:
            wait: False to let the threads finish by themselves.
        """
        self._reader.close(wait=wait)
        if not self._writer.close(last=self._finish, wait=wait):
            self._close_files()

    def _finish(self) -> None:
        """The end of the writing thread: a last try for what is only in memory."""
        if self._unwritten:
            self._failures_of_writing(dict(self._unwritten), self._patience)
        timer, self._retrying = self._retrying, None
        if timer is not None:
            timer.cancel()
        lost = self._lost + len(self._unwritten)
        if lost and "lost" not in self._warned:
            self._warned.add("lost")
            _warn(f"{lost} answers could not be stored in {self.directory}; the next run pays for them again")
        self._close_files()

    def _close_files(self) -> None:
        with contextlib.suppress(Exception):  # as in `_read`
            if self._store is not None:
                self._store.close()

    def _opened(self) -> Store | None:
        with self._opening:
            if self._store is None and not self._refused:
                from .storage.store import Store

                self._store = Store(self.directory, _warn)
            return self._store

    def _failed(self, what: str, reason: Exception) -> None:
        from .storage.store import CacheRefusedError

        if isinstance(reason, CacheRefusedError):
            self._store, self._refused = None, True
            what, told = "open", f"the cache in {self.directory} cannot be opened; calls go on without it"
        else:
            told = f"cannot {what} the cache in {self.directory}; calls go on"
            if what == "write":
                told += ", and their answers are kept in memory until it can be written"
        if what not in self._warned:
            self._warned.add(what)
            _warn(f"{told}: {reason}")


def _tag(asked: Asked | None) -> str | None:
    return None if asked is None else kind_of(asked.provider, asked.operation)


def _warn(message: str) -> None:
    # Where warnings are made errors, this one still must not fail a call.
    with contextlib.suppress(CacheWarning):
        warnings.warn(message, CacheWarning, stacklevel=2)


def now() -> float:
    """Unix time, for the `created` of a new entry."""
    return time.time()


__all__ = [
    "Asked",
    "CacheStatistics",
    "CacheWarning",
    "Entry",
    "ResponseCache",
    "default_directory",
    "now",
]
