"""The disk cache of answers. Its failures are warnings, and never fail a call."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from .. import doors
from ..errors import RequestError
from ..runtime import clock
from ..runtime.warning import find_caller, warn_user
from .entry import Entry, Question, QuestionFields, decode_entry, decode_question, encode_entry
from .worker import BatchQueue, Worker, start_timer

if TYPE_CHECKING:
    import asyncio
    from pathlib import Path

    from ..._features.cache_care.maintenance import Explanation, Imported, Selection, Verification
    from ..._features.second_level.access import SecondLevelStatistics
    from ..runtime.event_loop import Inbox
    from ..runtime.threads import Timer
    from .store import Store

T = TypeVar("T")

PATIENCE = 5.0
_LINGER = 0.002
"""Seconds that the answers of concurrent calls wait to be stored together."""
_MOST_UNWRITTEN_BYTES = 64_000_000
MOST_AHEAD_BYTES = 4_000_000
_RETRY_AFTER = 1.0
_LONGEST_RETRY = 30.0
_ONE_LEVEL = (
    "Client(cache=...) names a store that machines share, such as 'valkey://host:6379/0'; this one has none"
)


class CacheWarning(UserWarning):
    """The cache cannot be read or written. Calls go on without it."""


def default_directory() -> Path:
    """The directory `LLM_PROVIDER_CACHE_DIR`, else the platform's user cache directory."""
    from pathlib import Path

    directory = os.environ.get("LLM_PROVIDER_CACHE_DIR", "").strip()
    if directory:
        return Path(directory).expanduser()
    import platformdirs

    return Path(platformdirs.user_cache_dir("llm_provider", appauthor=False))


@dataclass(frozen=True, slots=True)
class CacheStatistics:
    """The use of a cache in this process, and its size.

    Args:
        hits: Lookups that found an answer.
        misses: Lookups that found none.
        writes: Answers stored.
        pending: Answers that are not stored yet, including those kept in memory after a failed write.
        entries: Answers on disk.
        bytes: Size of the files.
        saved: USD that the hits would have cost, at today's prices; hits of unknown price are left out.
        second_level: The use of the store that machines share; None if there is none.
    """

    hits: int
    misses: int
    writes: int
    pending: int
    entries: int
    bytes: int
    saved: float
    second_level: SecondLevelStatistics | None = None


class ResponseCache:
    """Answers by key, in files on disk that are opened at first use.

    `get` reads in the calling thread, `get_soon` in a reader thread. A writer thread stores answers, so that
    a slow write delays no reader. An answer that cannot be written is kept in memory and written again later,
    and a warning says so.

    Args:
        directory: The directory; default `LLM_PROVIDER_CACHE_DIR`, else the platform's user cache directory.
        patience: Seconds that a write waits for the locks of other processes.
        saved: Returns the USD that the hits would have cost, for `stats`: the cache knows no prices.
        shared: Whether the group of the directory is trusted to write to it; None means what
            `LLM_PROVIDER_CACHE_SHARED` says.
    """

    has_second_level = False
    """Whether answers may be in a second level, which an event loop's thread does not read."""
    leases = False

    def __init__(
        self,
        directory: str | os.PathLike[str] | None = None,
        *,
        patience: float = PATIENCE,
        saved: Callable[[], float] = float,
        shared: bool | None = None,
    ) -> None:
        self._directory = directory
        if shared is None and os.environ.get("LLM_PROVIDER_CACHE_SHARED"):
            from ..runtime.switches import switch

            shared = switch("LLM_PROVIDER_CACHE_SHARED")
        self._shared = bool(shared)
        self._patience = patience
        self._saved = saved
        self._warn = partial(warn, caller=find_caller())  # for warnings of its threads
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
        self._retrying: Timer | None = None
        self._retry_at = 0.0
        self._lost = 0
        self._hits = self._misses = self._written = 0
        self._warned: set[str] = set()

    def after_fork(self) -> None:
        """Forget the parent's files and threads: the child opens its own, the parent stores its answers."""
        self._abandoned = (self._store, self._reader, self._writer)
        self._reset()

    @property
    def directory(self) -> Path:
        """The directory of the files."""
        from pathlib import Path

        return Path(self._directory).expanduser() if self._directory is not None else default_directory()

    @property
    def own_directory(self) -> Path:
        """The directory of this user's leases, limits and batches: in a shared cache, one for each user."""
        if not self._shared:
            return self.directory
        from .store import make_own_directory

        return make_own_directory(self.directory)

    @property
    def lease_directory(self) -> Path | None:
        """The directory of the leases on calls under way; None on a network file system."""
        from .store import is_network

        return None if is_network(self.directory) else self.own_directory / "leases"

    def get(self, key: str, ahead: bytes | None = None) -> Entry | None:
        """The entry of a key, or None; a hit or a miss. `ahead` is what `read_ahead` has read for it."""
        entry = self._unwritten.get(key)
        if entry is None and ahead is not None:
            entry = decode_entry(key, ahead)
        if entry is None:
            value = self._read_value(key)
            entry = None if value is None else decode_entry(key, value)
        if entry is None:
            self._misses += 1
        else:
            self._hits += 1
        return entry

    get_here = get
    """`get` from the local store alone, also where there is a second level."""

    def peek(self, key: str) -> Entry | None:
        """The entry of a key in the local store, without counting a hit or a miss."""
        return self._unwritten.get(key) or self._read(key)

    def peek_whole(self, key: str) -> tuple[Entry, QuestionFields | None] | None:
        """The entry of a key in the local store and its question, without counting a hit or a miss."""
        entry = self._unwritten.get(key)
        if entry is not None:
            return entry, None if entry.question is None else entry.question.to_json()
        value = self._read_value(key)
        entry = None if value is None else decode_entry(key, value)
        return None if entry is None or value is None else (entry, decode_question(key, value))

    def read_newest(self, tag: str, count: int, read: Callable[[Iterator[list[tuple[str, bytes]]]], T]) -> T:
        """What `read` makes of the entries with a tag, in groups of about `count`, newest first.

        There are none if the cache cannot be read.
        """
        try:
            return self._with_store(lambda store: read(store.newest(tag, count)))
        except Exception as error:  # as in `_read_value`
            self._report_failure("read", error)
            return read(iter(()))

    def read_ahead(self, keys: Sequence[str]) -> dict[str, bytes]:
        """The stored values of keys that `get` is about to ask for as `ahead`, up to 4 MB, unchecked.

        One statement for many keys takes half of the time of one for each.
        """
        try:
            return (self._store or self._open()).read_many(keys, MOST_AHEAD_BYTES)
        except Exception:  # `get` will fail in the same way, and warn
            return {}

    def get_soon(self, key: str, inbox: Inbox) -> asyncio.Future[Entry | None]:
        """`get` for an event loop: a thread reads the disk, and wakes the loop once for many entries."""
        return self._reads.submit_from(inbox, key)

    def _read_all(self, keys: list[str]) -> list[Entry | None]:
        return [self.get(key) for key in keys]

    def _read(self, key: str) -> Entry | None:
        value = self._read_value(key)
        return None if value is None else decode_entry(key, value)

    def _read_value(self, key: str) -> bytes | None:
        try:
            return (self._store or self._open()).read(key)
        except Exception as error:  # a broken disk or file may raise anything, and must not fail a call
            self._report_failure("read", error)
            return None

    def put(self, key: str, entry: Entry) -> Future[bool]:
        """Store an entry, in the writer thread. The result is whether it is on disk."""
        return self._writes.submit((key, entry))

    def put_soon(self, key: str, entry: Entry, inbox: Inbox) -> asyncio.Future[bool]:
        """`put` for an event loop, which is woken once for many entries.

        The future cannot be cancelled: a task that waits for it is cancelled once the entry is stored.
        """
        return self._writes.submit_from(inbox, (key, entry))

    def flush(self) -> None:
        """Wait until all entries put before are written."""
        self._writes.flush()

    def _write_all(self, entries: list[tuple[str, Entry]]) -> list[bool]:
        failures = self._try_to_write(dict(entries), self._patience)
        return [key not in failures for key, _ in entries] if failures else [True] * len(entries)

    def _try_to_write(self, entries: dict[str, Entry], patience: float) -> set[str]:
        """Store entries. Those that cannot be stored are kept in memory, and their keys are returned."""
        try:
            store = self._store or self._open()
            rows = [
                (key, encode_entry(key, entry), None if entry.question is None else entry.question.tag)
                for key, entry in entries.items()
            ]
            failures = store.write(rows, patience)
        except Exception as error:  # as in `_read_value`
            failures = dict.fromkeys(entries, error)
            self._report_failure("write", error)
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
            self._report_failure("write", error)
        now = clock.monotonic()
        if not self._unwritten:
            self._retry_after = _RETRY_AFTER
        elif not failures and self._retrying is not None and self._retry_at > now + _RETRY_AFTER:
            # The disk works again. Until they are written, a killed process loses the answers in memory.
            self._retrying.cancel()
            self._retrying, self._retry_after = None, _RETRY_AFTER
        if self._unwritten and self._retrying is None and not self._refused:
            self._retry_at = now + self._retry_after
            self._retrying = start_timer(self._retry_after, self._writer, self._write_again)
            self._retry_after = min(2 * self._retry_after, _LONGEST_RETRY)

    def _write_again(self) -> None:
        self._retrying = None
        self._try_to_write(dict(self._unwritten), patience=0.0)

    def stats(self) -> CacheStatistics:
        """The use of the cache in this process, and its size."""
        entries = size = 0
        try:
            store = self._store or self._open()
            entries, size = store.count(), store.bytes_on_disk()
        except Exception as error:  # as in `_read_value`
            self._report_failure("read", error)
        return CacheStatistics(
            hits=self._hits,
            misses=self._misses,
            writes=self._written,
            pending=len(self._writes) + len(self._unwritten),
            entries=entries,
            bytes=size,
            saved=self._saved(),
        )

    def __len__(self) -> int:
        """The number of answers on disk; 0 if the cache cannot be read."""
        return self.stats().entries

    def __bool__(self) -> bool:
        # An empty cache is not a missing one.
        return True

    def verify(self) -> Verification:
        """Read every answer and compare it with its checksum. The result is true if all are intact.

        `llm_provider.verify` checks a file of evidence instead, which needs no cache.

        Raises:
            OSError: the cache cannot be read.
        """
        return self._with_store(doors.cache_maintenance.verify)

    def prune(
        self, *, older_than: float | None = None, model: str | None = None, dry_run: bool = False
    ) -> int:
        """Remove the answers that meet every condition. Nothing else removes answers.

        Args:
            older_than: Seconds since the original call.
            model: The model that was asked for, or the model that the provider named.
            dry_run: Only count the answers.

        Returns:
            The number of answers that meet the conditions.

        Raises:
            RequestError: no condition is given.
            OSError: the cache cannot be read or written.
        """
        return self._with_store(
            lambda store: doors.cache_maintenance.prune(
                store, older_than=older_than, model=model, dry_run=dry_run
            )
        )

    def find_keys(self, **selection: Unpack[Selection]) -> list[str]:
        """The sorted keys of a selection. It raises what `export` raises."""
        return self._with_store(lambda store: list(doors.cache_maintenance.find_keys(store, selection)))

    def export(self, path: str | os.PathLike[str], **selection: Unpack[Selection]) -> int:
        """Write answers for another cache, and return their number; `Results.export` writes evidence.

        Args:
            path: The file of JSON lines, replaced once it is complete. The same answers give the same bytes.
            **selection: Which answers, see `Selection`: by `results`, `model`, `tag`; default all.

        Raises:
            OSError: the file cannot be written, or the cache or the ledger cannot be read.
            RequestError: there is no ledger with the keys of the tag.
        """
        keys = self.find_keys(**selection) if any(selection.values()) else None
        return self._with_store(lambda store: doors.cache_maintenance.write_archive(store, path, keys))

    def load(self, path: str | os.PathLike[str]) -> Imported:
        """Add the answers of an exported file. Answers that are already stored stay unchanged.

        Args:
            path: The file. All of it is checked before anything is added.

        Raises:
            RequestError: the file is not an export, is of another version, or is damaged; the message names
                the line.
            OSError: the file cannot be read, or the cache cannot be written.
        """
        return self._with_store(lambda store: doors.cache_maintenance.read_archive(store, path))

    def fetch(self, keys: Sequence[str]) -> None:
        """Copy answers that only a second level has into the local store. Here it does nothing."""

    def push(self) -> Imported:
        """Send answers to the second level (`docs/clusters.md`).

        Raises:
            RequestError: the cache has no second level.
        """
        raise RequestError(f"{_ONE_LEVEL} to push answers to")

    def pull(self) -> Imported:
        """Copy the answers of the second level into the local store (`docs/clusters.md`).

        Raises:
            RequestError: the cache has no second level.
        """
        raise RequestError(f"{_ONE_LEVEL} to pull answers from")

    def explain_miss(self, question: Question) -> Explanation | None:
        """The stored question that is nearest to one without an answer, and their differences.

        Returns:
            None if no question to the same provider and endpoint is stored.

        Raises:
            OSError: the cache cannot be read.
        """
        return self._with_store(lambda store: doors.cache_maintenance.explain(store, question))

    def _with_store(self, work: Callable[[Store], T]) -> T:
        """Do work that a user asked for, which may raise, once all earlier answers are written."""
        import sqlite3

        self._writes.flush()
        try:
            return work(self._store or self._open())
        except sqlite3.Error as error:
            raise OSError(f"the cache in {self.directory} cannot be used: {error}") from None

    def close(self, *, wait: bool = True) -> None:
        """Finish all writes and close the files. The next use opens them again.

        Args:
            wait: False to return at once and let the threads finish.
        """
        if wait:
            self._writes.flush()
        self._reader.close(wait=wait)
        if not self._writer.close(last=self._finish, wait=wait):
            self._close_files()

    def _finish(self) -> None:
        """The last task of the writer thread: try once more to store the answers kept in memory."""
        if self._unwritten:
            self._try_to_write(dict(self._unwritten), self._patience)
        timer, self._retrying = self._retrying, None
        if timer is not None:
            timer.cancel()
        lost = self._lost + len(self._unwritten)
        if lost and "lost" not in self._warned:
            self._warned.add("lost")
            self._warn(f"{lost} answers could not be stored in {self.directory}; the next run pays again")
        self._close_files()

    def _close_files(self) -> None:
        with contextlib.suppress(Exception):  # as in `_read_value`
            if self._store is not None:
                self._store.close()

    def _open(self) -> Store:
        from .store import CacheRefusedError, Store

        with self._opening:
            if self._refused:
                raise CacheRefusedError(f"the cache in {self.directory} cannot be opened")
            if self._store is None:
                self._store = Store(self.directory, self._warn, shared=self._shared)
            return self._store

    def _report_failure(self, action: str, error: Exception) -> None:
        """Warn of the first failure of an action."""
        from ..runtime.files import full_disk
        from .store import CacheRefusedError

        if isinstance(error, CacheRefusedError):
            self._store, self._refused = None, True
            action = "open"
            message = f"the cache in {self.directory} cannot be opened; calls go on without it"
        else:
            message = f"cannot {action} the cache in {self.directory}; calls go on"
            if action == "write":
                message += ", and their answers are kept in memory until they can be written"
        if action not in self._warned:
            self._warned.add(action)
            self._warn(f"{message}: {full_disk(error, self.directory, 'stored answers are safe') or error}")


def warn(message: str, caller: Any = None) -> None:
    """Show a warning about the cache."""
    # Even where warnings are errors, a cache must not fail a call.
    with contextlib.suppress(CacheWarning):
        warn_user(message, CacheWarning, caller)


__all__ = ["CacheWarning", "Entry", "Question", "ResponseCache", "default_directory"]
