"""The disk cache: key, lazily opened store, stored form. It never fails a call.

A key is the SHA-256 of canonical JSON `[schema version, provider, base_url, operation, payload, headers,
draw]`: every field that reaches the wire, and nothing else. API key, timeout, retries and transport are
not in it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import threading
import time
import warnings
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING

import orjson

from ._json import canonical
from ._worker import Worker

if TYPE_CHECKING:
    from pathlib import Path

    import diskcache

SCHEMA_VERSION = 1
"""Part of every key. A change of what is hashed or stored raises it, so that old entries are left alone."""

_SHARDS = 8
_BUSY_SECONDS = 1.0
_WRITE_TRIES = 10
_CHECKSUM_BYTES = 16


class CacheWarning(UserWarning):
    """The cache cannot be used or written; calls go on without it."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A stored answer: the provider's reply as it came, and how long the original call took, in seconds."""

    body: bytes
    seconds: float
    created: float
    """Unix time of the original call."""


def cache_key(
    *,
    provider: str,
    base_url: str | None,
    operation: str,
    body: bytes,
    headers: Mapping[str, str],
    draw: int,
) -> str:
    """The key of one sample, 64 hexadecimal digits.

    Args:
        provider: The route's name.
        base_url: The server asked; another server may answer differently.
        operation: The endpoint.
        body: The payload as canonical JSON.
        headers: The extra headers that are sent.
        draw: Number of the sample, from 0.

    >>> facts = dict(provider="openai", base_url=None, operation="chat", headers={}, draw=0)
    >>> cache_key(body=b'{"seed":1}', **facts) == cache_key(body=b'{"seed":1.0}', **facts)
    False
    """
    head = canonical([SCHEMA_VERSION, provider, base_url, operation])
    tail = canonical([dict(headers), draw])
    return hashlib.sha256(b"".join((head[:-1], b",", body, b",", tail[1:]))).hexdigest()


def default_directory() -> Path:
    """`LLM_PROVIDER_CACHE_DIR`, else the user's cache directory of the platform."""
    from pathlib import Path

    chosen = os.environ.get("LLM_PROVIDER_CACHE_DIR", "").strip()
    if chosen:
        return Path(chosen).expanduser()
    import platformdirs

    return Path(platformdirs.user_cache_dir("llm_provider", appauthor=False))


class ResponseCache:
    """Answers by key, in a diskcache `FanoutCache` that is opened on first use.

    The main thread reads by itself; every other thread, and every write, goes through one worker thread:
    diskcache opens a set of files per thread, and a hundred threads would run out of them.
    """

    def __init__(self, directory: str | os.PathLike[str] | None = None) -> None:
        self._given = directory
        self._reset()

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._store: diskcache.FanoutCache | None = None
        self._worker = Worker("llm_provider-cache")
        self._unwritten: list[tuple[str, Entry, Future[bool]]] = []
        self._unwritten_lock = threading.Lock()
        self._warned: set[str] = set()

    def after_fork(self) -> None:
        """Forget the parent's files and thread; the child opens its own."""
        self._abandoned = (self._store, self._worker)
        self._reset()

    @property
    def directory(self) -> Path:
        """Where the entries are."""
        from pathlib import Path

        return Path(self._given).expanduser() if self._given is not None else default_directory()

    def get(self, key: str) -> Entry | None:
        """The entry of a key; None where there is none or it cannot be read."""
        if threading.current_thread() is threading.main_thread():
            return self._get(key)
        return self.get_soon(key).result()

    def get_soon(self, key: str) -> Future[Entry | None]:
        """`get` in the worker thread, for an event loop that must not wait for the disk."""
        return self._worker.submit(lambda: self._get(key))

    def put(self, key: str, entry: Entry) -> Future[bool]:
        """Store an entry in the worker thread; the future tells when it is on disk, and whether."""
        stored: Future[bool] = Future()
        # From here on it cannot be cancelled: it is paid for.
        stored.set_running_or_notify_cancel()
        with self._unwritten_lock:
            self._unwritten.append((key, entry, stored))
            alone = len(self._unwritten) == 1
        if alone:
            # One task writes all that has come until it runs: waking the thread costs more than a write.
            self._worker.submit(self._write_all)
        return stored

    def _write_all(self) -> None:
        with self._unwritten_lock:
            entries, self._unwritten = self._unwritten, []
        for key, entry, stored in entries:
            stored.set_result(self._put(key, entry))

    def close(self, *, wait: bool = True) -> None:
        """Finish all writes and close the files; the cache opens again when used.

        Args:
            wait: False to let the worker thread finish by itself.
        """
        # diskcache closes only the files of the thread that asks: here, and in the worker after its writes.
        self._worker.close(last=self._close_files, wait=wait)
        self._close_files()

    def _close_files(self) -> None:
        with contextlib.suppress(Exception):  # as in `_get`
            if self._store is not None:
                self._store.close()

    def _get(self, key: str) -> Entry | None:
        try:
            store = self._opened()
            value = None if store is None else store.get(key, retry=False)
            return None if value is None else _unpacked(value)
        except Exception as error:  # whatever a broken disk or file raises must not fail a call
            self._warn("read", error)
            return None

    def _put(self, key: str, entry: Entry) -> bool:
        reason: object = "it stayed locked by another process"
        try:
            store = self._opened()
            if store is None:
                return False
            value = _packed(entry)
            # FanoutCache.set says False, and drops the value, when another process holds the lock.
            for _ in range(_WRITE_TRIES):
                if store.set(key, value, retry=False):
                    return True
        except Exception as error:  # as above
            reason = error
        self._warn("write", reason)
        return False

    def _opened(self) -> diskcache.FanoutCache | None:
        with self._lock:
            if self._store is None and "open" not in self._warned:
                try:
                    self._store = _open(self.directory)
                except Exception as error:  # as above
                    self._warned.add("open")
                    _warn(f"the cache in {self.directory} cannot be opened; calls go on without it: {error}")
            return self._store

    def _warn(self, what: str, reason: object) -> None:
        if what not in self._warned:
            self._warned.add(what)
            _warn(f"cannot {what} the cache in {self.directory}; calls go on: {reason}")


def _warn(message: str) -> None:
    # Where warnings are made errors, this one still must not fail a call.
    with contextlib.suppress(CacheWarning):
        warnings.warn(message, CacheWarning, stacklevel=2)


def _open(directory: Path) -> diskcache.FanoutCache:
    import diskcache

    from ._disk import BytesDisk

    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    facts = directory.stat()
    if hasattr(os, "getuid") and facts.st_uid != os.getuid():
        raise PermissionError("the directory belongs to another user")
    if stat.S_IMODE(facts.st_mode) & 0o022:
        raise PermissionError("the directory can be written by other users")
    # Without culling nothing that was paid for is ever evicted.
    return diskcache.FanoutCache(
        directory=str(directory / f"v{SCHEMA_VERSION}"),
        shards=_SHARDS,
        timeout=_BUSY_SECONDS,
        disk=BytesDisk,
        eviction_policy="none",
        cull_limit=0,
        statistics=0,
        tag_index=0,
    )


def _packed(entry: Entry) -> bytes:
    head = orjson.dumps({"seconds": entry.seconds, "created": entry.created})
    stored = b"".join((head, b"\n", entry.body))
    return hashlib.blake2b(stored, digest_size=_CHECKSUM_BYTES).digest() + stored


def _unpacked(value: bytes) -> Entry | None:
    checksum, stored = value[:_CHECKSUM_BYTES], value[_CHECKSUM_BYTES:]
    if hashlib.blake2b(stored, digest_size=_CHECKSUM_BYTES).digest() != checksum:
        # Flipped or cut on disk: as good as absent, and written anew by the call that follows.
        return None
    head, _, body = stored.partition(b"\n")
    facts = orjson.loads(head)
    return Entry(body=body, seconds=facts["seconds"], created=facts["created"])


def now() -> float:
    """Unix time, for the `created` of a new entry."""
    return time.time()
