"""One shard of the cache on disk: a diskcache database, read and written with SQL of our own.

diskcache creates the database, but does not open it. Opening a `diskcache.Cache` writes some forty settings,
so it fails on a read-only disk, and waits up to a minute per statement for another process's lock. Opening
the cache and reading one answer takes 22 ms with diskcache, and 1 ms with this module. A
`diskcache.FanoutCache` with the `BytesDisk` of `row_format` can open the same files.

Only rows that contain raw bytes are read: nothing is unpickled, and no file that a row names is opened
(CVE-2025-69872).
"""

import contextlib
import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

from ..runtime import clock
from ..runtime.databases import Allowed, open_database
from ..runtime.files import Identity, identity_of

DATABASE = "cache.db"

_PLAIN = "raw = 1 AND mode = 1 AND filename IS NULL AND typeof(value) = 'blob'"
# Only the line above is inserted into these statements.
_READ = f"SELECT value FROM Cache WHERE key = ? AND {_PLAIN}"  # noqa: S608 -- see above
_READ_MANY = f"SELECT key, value FROM Cache WHERE {_PLAIN} AND key IN "  # noqa: S608 -- see above
_WRITE = (
    "INSERT INTO Cache (key, raw, store_time, access_time, mode, value, tag)"
    " VALUES (?, 1, ?, ?, 1, ?, ?)"
    " ON CONFLICT (key, raw) DO UPDATE SET store_time = excluded.store_time, expire_time = NULL,"
    " mode = 1, filename = NULL, value = excluded.value, tag = excluded.tag"
)
_DELETE = "DELETE FROM Cache WHERE key = ? AND raw = 1"
_ITEMS_AFTER = f"SELECT key, value FROM Cache WHERE key > ? AND {_PLAIN} ORDER BY key LIMIT 200"  # noqa: S608 -- see above
_NEWEST = (
    f"SELECT store_time, key, value FROM Cache WHERE tag = ? AND {_PLAIN}"  # noqa: S608 -- see above
    " ORDER BY rowid DESC LIMIT ?"
)
_COUNT = "SELECT value FROM Settings WHERE key = 'count'"
_RESCUE = (
    f"SELECT rowid, key, value, tag FROM Cache WHERE rowid >= ? AND {_PLAIN}"  # noqa: S608 -- see above
    " ORDER BY rowid LIMIT ?"
)
_RESCUE_FROM_END = f"SELECT key, value, tag FROM Cache WHERE {_PLAIN} ORDER BY rowid DESC"  # noqa: S608 -- see above
_RESCUED_AT_ONCE = 200
_UNREADABLE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_IOERR)
_MOST_UNREADABLE = 20_000
"""Rows without one between them that can be read. A damaged page of SQLite's tree may hide thousands."""
_COUNTERS = (
    "Settings_count_insert", "Settings_count_delete", "Settings_size_insert", "Settings_size_update",
    "Settings_size_delete",
)  # fmt: skip
"""The triggers of diskcache."""

READING_PATIENCE = 1.0
"""Seconds. Readers meet a lock only if the database has no write-ahead log or is being repaired."""


Row: TypeAlias = tuple[str, bytes, str | None]
"""Key, value, and a tag to find the row by."""


class ReplacedFileError(OSError):
    """The database was deleted or replaced while it was open, so the last write is lost."""


class _File:
    """A database, and the identity of its file when it was opened."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.identity: Identity | None = None
        self._path = str(folder / DATABASE)
        self._connection: sqlite3.Connection | None = None

    def close(self) -> None:
        """Close the database. The next use opens it again."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


class Reader(_File):
    """Reads a shard, even while another connection writes it. One thread at a time. A missing one is empty.

    All methods but `check` and `bytes_on_disk` raise `sqlite3.Error` if it cannot be read.
    """

    def read(self, key: str) -> bytes | None:
        """The value of a key; None if it has none."""
        reader = self._connection or self._open()
        row: tuple[bytes] | None = None if reader is None else reader.execute(_READ, (key,)).fetchone()
        if row is not None:
            return row[0]
        if reader is None or identity_of(self._path) == self.identity:
            return None
        # Another process has replaced the database.
        self.close()
        return self.read(key)

    def read_many(self, keys: Sequence[str], most_bytes: int) -> dict[str, bytes]:
        """The values of the keys that have one, in one statement. Stops after `most_bytes`."""
        reader = self._connection or self._open()
        values: dict[str, bytes] = {}
        if reader is not None:
            statement = f"{_READ_MANY}({','.join('?' * len(keys))})"
            # An open cursor would keep the write-ahead log from being truncated.
            with contextlib.closing(reader.execute(statement, keys)) as rows:
                for key, value in rows:
                    values[key] = value
                    most_bytes -= len(value)
                    if most_bytes < 0:
                        break
        return values

    def items_after(self, key: str) -> list[tuple[str, bytes]]:
        """The next 200 keys and values, sorted by key, that come after a key."""
        return self._fetch(_ITEMS_AFTER, key)

    def newest(self, tag: str, count: int) -> list[tuple[float, str, bytes]]:
        """Unix time, key and value of the newest rows with a tag."""
        return self._fetch(_NEWEST, tag, count)

    def count(self) -> int:
        # diskcache's triggers maintain this number. Counting the rows would read the whole index.
        return int(sum(number for (number,) in self._fetch(_COUNT)))

    def check(self) -> str:
        """The result of SQLite's own check: "ok", or the problem."""
        try:
            return next((text for (text,) in self._fetch("PRAGMA quick_check(1)")), "ok")
        except sqlite3.Error as error:
            return str(error)

    def bytes_on_disk(self) -> int:
        """The size of the database and its write-ahead log."""
        size = 0
        for suffix in ("", "-wal"):
            with contextlib.suppress(OSError):
                size += Path(self._path + suffix).stat().st_size
        return size

    def _fetch(self, statement: str, *parameters: object) -> list[Any]:
        reader = self._connection or self._open()
        return [] if reader is None else reader.execute(statement, parameters).fetchall()

    def _open(self) -> sqlite3.Connection | None:
        self.identity = identity_of(self._path)
        if self.identity is None:
            return None
        try:
            self._connection = _connect(self._path, "mode=rw", READING_PATIENCE, _read_one)
        except sqlite3.OperationalError:
            if os.access(self.folder, os.W_OK):
                raise
            # SQLite cannot create its shared-memory file here. No other process can write either.
            self._connection = _connect(self._path, "mode=ro&immutable=1", READING_PATIENCE, _read_one)
        return self._connection


class Writer(_File):
    """Writes a shard, in one of SQLite's journal modes. One thread at a time."""

    def __init__(self, folder: Path, journal: str) -> None:
        super().__init__(folder)
        self._journal = journal
        self._patience = 0.0

    def write(self, rows: Sequence[Row], patience: float) -> None:
        """Store values in one transaction, waiting at most `patience` seconds for the lock.

        A `ReplacedFileError` says that they went into a database that is deleted or replaced.
        """
        now = clock.time()
        self._transact(_WRITE, [(key, now, now, value, tag) for key, value, tag in rows], patience)
        if identity_of(self._path) != self.identity:
            raise ReplacedFileError(f"{self._path} was deleted or replaced while it was open")

    def delete(self, keys: Sequence[str], patience: float) -> None:
        """Delete rows in one transaction; `sqlite3.Error` if they are not deleted."""
        self._transact(_DELETE, [(key,) for key in keys], patience)

    def _transact(self, statement: str, rows: Sequence[tuple[object, ...]], patience: float) -> None:
        writer = self._connection or self._open(patience)
        if patience != self._patience:
            writer.execute(f"PRAGMA busy_timeout = {round(patience * 1000)}")
            self._patience = patience
        if len(rows) == 1:
            writer.execute(statement, rows[0])  # a statement alone is a transaction
            return
        with writer:  # commits, or rolls back
            writer.execute("BEGIN IMMEDIATE")
            writer.executemany(statement, rows)

    def _open(self, patience: float) -> sqlite3.Connection:
        self.identity = identity_of(self._path)
        if self.identity is None:
            raise ReplacedFileError(f"{self._path} does not exist")
        self._connection = _connect(self._path, "mode=rw", patience, self._prepare)
        self._patience = patience
        return self._connection

    def _prepare(self, writer: sqlite3.Connection) -> None:
        # A committed write survives a kill of the process; after a power cut the last ones may be gone.
        writer.execute("PRAGMA synchronous = NORMAL")
        if writer.execute("PRAGMA journal_mode").fetchone()[0] != self._journal:
            # The cache was moved to another kind of file system.
            writer.execute(f"PRAGMA journal_mode = {self._journal}")


def rescue(folder: Path) -> Iterator[list[Row]]:
    """The rows of a damaged database that can be read, 200 at a time.

    The values may be damaged: their own checksums detect that.
    """
    rows = _read_rows(folder)
    while batch := list(islice(rows, _RESCUED_AT_ONCE)):
        yield batch


def _read_rows(folder: Path) -> Iterator[Row]:
    with (
        contextlib.suppress(sqlite3.Error, OverflowError),
        contextlib.closing(_connect(str(folder / DATABASE), "mode=rw", 5.0, bool)) as damaged,
    ):
        first, count, unreadable = 0, _RESCUED_AT_ONCE, 0
        last: set[str] = set()
        while unreadable < _MOST_UNREADABLE:
            try:
                rows = damaged.execute(_RESCUE, (first, count)).fetchall()
            except sqlite3.Error as error:
                # A key that is no UTF-8 has no code.
                if getattr(error, "sqlite_errorcode", _UNREADABLE[0]) & 0xFF not in _UNREADABLE:
                    break
                # One by one up to the damage, and past it.
                first, unreadable, count = first + (count == 1), unreadable + (count == 1), 1
                continue
            if not rows:
                break
            yield from [(key, value, tag) for _, key, value, tag in rows]
            last = {row[1] for row in rows}
            # The number of a damaged row may be any.
            first, count = max(first, rows[-1][0]) + 1, _RESCUED_AT_ONCE if unreadable else count
            unreadable = 0
        # A damaged number may have led past all rows after it.
        for row in damaged.execute(_RESCUE_FROM_END):
            if row[0] in last:
                break
            yield row


def _read_one(reader: sqlite3.Connection) -> None:
    reader.execute("SELECT 1 FROM Cache LIMIT 1").fetchone()


def _connect(
    path: str, options: str, patience: float, prepare: Callable[[sqlite3.Connection], object]
) -> sqlite3.Connection:
    # Without urllib, which nothing else on this path imports.
    for character in "%?#":
        path = path.replace(character, f"%{ord(character):02x}")
    uri, allowed = f"file:{path}?{options}", Allowed(_COUNTERS, "Settings", ("typeof",))
    return open_database(uri, timeout=patience, uri=True, allowed=allowed, prepare=prepare)
