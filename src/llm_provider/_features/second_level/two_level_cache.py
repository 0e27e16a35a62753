"""The local store of answers with a second level behind it, which other machines use too.

An answer of the second level is copied into the local store, and one that was paid for is stored in both. A
thread that runs an event loop must not wait for a server: there, lookups read the local store only, and a
call that finds nothing asks the second level on its way to the provider (`Engine.ask`), in the reader's
thread.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from ..._core import doors
from ..._core.errors import RequestError
from ..._core.store.entry import Entry, Row, decode_entry, decode_question, encode_entry, tag_of
from ..._core.store.response_cache import MOST_AHEAD_BYTES, CacheStatistics, ResponseCache
from ..._core.store.store import Store
from ..._core.store.worker import BatchQueue
from .access import MOST_KEYS, SecondLevelAccess, Write
from .settings import SecondLevel

if TYPE_CHECKING:
    import asyncio

    from ..._core.runtime.event_loop import Inbox
    from ..cache_care.maintenance import Imported

_LINGER = 0.002
"""Seconds that a call which is about to be sent waits for others, to ask the second level together."""
_MOST_COPIES_BYTES = 64_000_000
"""Answers that wait to be copied into the local store. Further ones are read and not copied."""


class TwoLevelCache(ResponseCache):
    """`ResponseCache` with a second level; the other arguments go to its local store."""

    has_second_level = True

    def __init__(
        self, level: SecondLevel, directory: str | os.PathLike[str] | None = None, **settings: Any
    ) -> None:
        self._level = level
        self.leases = level.leases
        super().__init__(directory, **settings)

    def _reset(self) -> None:
        super()._reset()
        # After a fork, finalizing the parent's connections would touch its sockets.
        self._abandoned_access = getattr(self, "_access", None)
        self._access = SecondLevelAccess(self._level, self._read_value, self._warn)
        self._reads = BatchQueue(self._reader, self._read_all, _LINGER)
        self._newer_reads = BatchQueue(self._reader, self._read_newer)
        self._copies: BatchQueue[tuple[str, bytes], None] = BatchQueue(self._writer, self._copy_all)
        self._copies_bytes = 0

    def get(self, key: str, ahead: bytes | None = None) -> Entry | None:
        """The entry of a key. In a thread that runs an event loop, only the local store is read."""
        entry = super().get(key, ahead)
        if entry is None and not _in_event_loop():
            entry = _decode(key, self._read_behind((key,)))
            if entry is not None:
                self._misses -= 1
                self._hits += 1
        return entry

    def read_ahead(self, keys: Sequence[str]) -> dict[str, bytes]:
        """The values of keys that `get_here` is about to ask for, with one request to the second level."""
        local = super().read_ahead(keys)
        if len(local) == len(keys) or _in_event_loop():
            return local
        missing = [key for key in keys if key not in local and key not in self._unwritten]
        if sum(map(len, local.values())) >= MOST_AHEAD_BYTES:
            # Reading ahead has stopped, so the local store may have some of the others.
            missing = [key for key in missing if self._read(key) is None]
        return local | self._read_behind(missing)

    def fetch(self, keys: Sequence[str]) -> None:
        """Copy answers that only the second level has into the local store, and wait for that."""
        missing = [key for key in keys if self.peek(key) is None]
        for start in range(0, len(missing), MOST_KEYS):
            self._read_behind(missing[start : start + MOST_KEYS])
            self._copies.flush()

    def _read_all(self, keys: list[str]) -> list[Entry | None]:
        # Only calls that have missed before come here, so a miss is not counted again.
        entries = [self.peek(key) for key in keys]
        behind = self._read_behind([key for key, entry in zip(keys, entries, strict=True) if entry is None])
        entries = [entry or _decode(key, behind) for key, entry in zip(keys, entries, strict=True)]
        hits = len(keys) - entries.count(None)
        self._hits += hits
        self._misses -= hits
        return entries

    def get_newer_soon(self, key: str, inbox: Inbox) -> asyncio.Future[Entry | None]:
        """`get_soon` for a local entry that is too old: another machine may have asked anew."""
        return self._newer_reads.submit_from(inbox, key)

    def _read_newer(self, keys: list[str]) -> list[Entry | None]:
        behind = self._read_behind(keys)
        return [_decode(key, behind) for key in keys]

    def _read_behind(self, keys: Sequence[str]) -> dict[str, bytes]:
        """The intact values of some keys in the second level, which are copied into the local store."""
        # A value that was damaged on its way counts as absent.
        values = _leave_out_damaged(self._access.read(keys))
        self._access.hits += len(values)
        for copy in values.items():
            if self._copies_bytes < _MOST_COPIES_BYTES:
                self._copies_bytes += len(copy[1])
                self._copies.submit(copy)
        return values

    def _write_all(self, entries: list[tuple[str, Entry]]) -> list[bool]:
        written = super()._write_all(entries)
        pairs = zip(entries, written, strict=True)
        self._access.write([Write(key, encode_entry(key, entry), local) for (key, entry), local in pairs])
        return written

    def _copy_all(self, copies: list[tuple[str, bytes]]) -> list[None]:
        self._copies_bytes -= sum(len(value) for _, value in copies)
        try:
            (self._store or self._open()).write([_row(*copy) for copy in copies], self._patience)
        except Exception as error:  # as in `_read_value`
            self._report_failure("write", error)
        return [None] * len(copies)

    def take_lease(self, key: str) -> Future[bool]:
        """Take the lease on a question; the result is False while another machine asks it."""
        return self._access.take_lease(key)

    def release_lease(self, key: str) -> None:
        """Release the lease once the answer is in the second level."""
        self._access.release_lease(key)

    def stats(self) -> CacheStatistics:
        """The use of both levels in this process, and their sizes."""
        return replace(super().stats(), second_level=self._access.statistics())

    def push(self) -> Imported:
        """Send the local answers to the second level that it does not have. Those that it has stay unchanged.

        Raises:
            OSError: the local store or the second level cannot be used.
        """

        def add(_: Store, values: dict[str, bytes]) -> int:
            present = self._access.get_now(list(values))
            lacking = {key: value for key, value in values.items() if key not in present}
            if lacking:
                self._access.put_now(lacking)
            return len(lacking)

        return self._copy(Store.items, add)

    def pull(self) -> Imported:
        """Copy the answers of the second level, without those that are there, for example before `export`.

        Raises:
            OSError: the second level or the local store cannot be used.
        """

        def add(store: Store, values: dict[str, bytes]) -> int:
            return store.insert([_row(*item) for item in values.items() if self._read(item[0]) is None])

        return self._copy(lambda _: self._access.store.export(), add)

    def _copy(
        self,
        read: Callable[[Store], Iterable[tuple[str, bytes]]],
        add: Callable[[Store, dict[str, bytes]], int],
    ) -> Imported:
        """Copy answers from one level to the other; `add` takes intact ones and returns how many it added."""

        def work(store: Store) -> Imported:
            added = total = 0
            rest = iter(read(store))
            while group := dict(islice(rest, MOST_KEYS)):
                intact = _leave_out_damaged(group)
                added += add(store, intact)
                total += len(intact)
            return doors.cache_maintenance.Imported(added=added, kept=total - added)

        self._access.flush()
        try:
            return self._with_store(work)
        except (OSError, RequestError):
            raise
        except Exception as error:  # a store may raise anything
            problem = f"{type(error).__name__}: {error}"
            raise OSError(f"the second level {self._level.name} cannot be used: {problem}") from None

    def close(self, *, wait: bool = True) -> None:
        """Finish all writes to both levels and close them. The next use opens them again."""
        if wait:
            self._copies.flush()
        super().close(wait=wait)

    def _close_files(self) -> None:
        # It reads the local store once more.
        self._access.close()
        super()._close_files()


def _in_event_loop() -> bool:
    """Whether this thread runs an event loop. A script that has none does not import asyncio for this."""
    asyncio = sys.modules.get("asyncio")
    if asyncio is None:
        return False
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _row(key: str, value: bytes) -> Row:
    return key, value, tag_of(decode_question(key, value))


def _decode(key: str, values: Mapping[str, bytes]) -> Entry | None:
    value = values.get(key)
    return None if value is None else decode_entry(key, value)


def _leave_out_damaged(values: Mapping[str, bytes]) -> dict[str, bytes]:
    return {key: value for key, value in values.items() if decode_entry(key, value) is not None}
