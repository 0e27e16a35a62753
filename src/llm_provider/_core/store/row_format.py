"""The format of diskcache rows that the cache allows: raw bytes only. Imported when a cache is created."""

import contextlib
import sqlite3
from pathlib import Path

import diskcache
from diskcache.core import MODE_RAW

from ..runtime.databases import open_database
from .entry import DATABASE

_UNUSED = (
    "INDEX Cache_expire_time", "TRIGGER Settings_size_insert", "TRIGGER Settings_size_update"
)  # fmt: skip
"""What diskcache creates for expiry and for values in files. Without them a write takes 8 % less."""
_new_databases: dict[str, bytes] = {}


class BytesDisk(diskcache.Disk):  # type: ignore[misc]  # diskcache has no types
    """Stores `bytes` inside the database, and reads nothing else: any other row is an error, and a miss.

    diskcache's own formats unpickle values and open files that a row names, so anybody who can write the
    database could run code or read files (CVE-2025-69872).
    """

    def put(self, key: object) -> tuple[str, bool]:
        if type(key) is not str:
            raise TypeError(f"cache keys are str, not {type(key).__name__}")
        return key, True

    def get(self, key: object, raw: bool) -> str:
        if not raw or type(key) is not str:
            raise ValueError("a cache row has a foreign key")
        return key

    def store(self, value: object, read: bool, key: object = None) -> tuple[int, int, None, memoryview]:
        if read or type(value) is not bytes:
            raise TypeError(f"cache values are bytes, not {type(value).__name__}")
        return 0, MODE_RAW, None, sqlite3.Binary(value)

    def fetch(self, mode: int, filename: str | None, value: object, read: bool) -> bytes:
        if mode != MODE_RAW or filename is not None or type(value) is not bytes or read:
            raise ValueError("a cache row is not raw bytes")
        return value


def new_database(folder: Path, journal: str) -> bytes:
    """The file of a database without rows. A process makes one, in `folder`, and keeps it: it takes 5 ms."""
    if journal in _new_databases:
        return _new_databases[journal]
    cache = diskcache.Cache.__new__(diskcache.Cache)
    with contextlib.closing(cache):  # also after a full disk, on which its constructor fails
        # Without culling no answer is ever evicted.
        cache.__init__(
            str(folder),
            disk=BytesDisk,
            eviction_policy="none",
            cull_limit=0,
            statistics=0,
            tag_index=0,
            sqlite_journal_mode=journal,
            timeout=5.0,
        )
    with contextlib.closing(open_database(folder / DATABASE, timeout=5.0)) as database:
        for unused in _UNUSED:
            database.execute(f"DROP {unused}")
    return _new_databases.setdefault(journal, (folder / DATABASE).read_bytes())
