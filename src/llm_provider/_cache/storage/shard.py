"""One shard of the cache on disk: a diskcache database, read and written with statements of our own.

diskcache makes the database. It is not used to open it: that writes some forty settings, so it fails on a
read-only disk, waits up to a minute per statement behind another process's lock, and costs a process that
only reads answers most of its time. A `diskcache.FanoutCache` with the `BytesDisk` of `_disk` opens the
same files.

Rows are only read where they hold raw bytes themselves; nothing is unpickled and no path is followed
(CVE-2025-69872).
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

DATABASE = "cache.db"

_PLAIN = "raw = 1 AND mode = 1 AND filename IS NULL AND typeof(value) = 'blob'"
# The only thing put into these statements is the line above.
_READ = f"SELECT value FROM Cache WHERE key = ? AND {_PLAIN}"  # noqa: S608 -- see above
_READ_MANY = f"SELECT key, value FROM Cache WHERE {_PLAIN} AND key IN "  # noqa: S608 -- see above
_WRITE = (
    "INSERT INTO Cache (key, raw, store_time, access_time, mode, value, tag)"
    " VALUES (?, 1, ?, ?, 1, ?, ?)"
    " ON CONFLICT (key, raw) DO UPDATE SET store_time = excluded.store_time, expire_time = NULL,"
    " mode = 1, filename = NULL, value = excluded.value, tag = excluded.tag"
)
_DELETE = "DELETE FROM Cache WHERE key = ? AND raw = 1"
_PAGE = f"SELECT key, value FROM Cache WHERE key > ? AND {_PLAIN} ORDER BY key LIMIT 200"  # noqa: S608 -- see above
_NEWEST = (
    f"SELECT store_time, key, value FROM Cache WHERE tag = ? AND {_PLAIN}"  # noqa: S608 -- see above
    " ORDER BY rowid DESC LIMIT ?"
)
_RESCUE = f"SELECT key, value, tag FROM Cache WHERE {_PLAIN} ORDER BY rowid"  # noqa: S608 -- see above
_RESCUED_AT_ONCE = 200
_CORRUPT = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})

READING_PATIENCE = 1.0
"""Seconds. Only a database without a log, or one that is being repaired, is ever locked for readers."""


Row: TypeAlias = tuple[str, bytes, str | None]
"""Key, value, and a tag to look for."""

Identity: TypeAlias = tuple[int, int]
"""Which file it is that has a name."""


class ReplacedFileError(OSError):
    """The database was deleted or exchanged while it was open, and what went into it is gone."""


def identity_of(path: str | Path) -> Identity | None:
    """Which file has a name now; None if there is none."""
    try:
        facts = os.stat(path)  # noqa: PTH116 -- a third of the time of Path.stat
    except OSError:
        return None
    return facts.st_dev, facts.st_ino


def is_corrupt(error: Exception) -> bool:
    """Whether a database is damaged, or is none, as after a crash of the machine."""
    if not isinstance(error, sqlite3.DatabaseError):
        return False
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    # An emptied file is a database without tables.
    return code in _CORRUPT or str(error).startswith(("no such table", "no such column"))


def is_busy(error: Exception) -> bool:
    """Whether another process held the lock for longer than was waited."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _BUSY


class _File:
    """A database, and which one it was when it was opened."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.identity: Identity | None = None
        self._path = str(folder / DATABASE)
        self._connection: sqlite3.Connection | None = None

    def close(self) -> None:
        """Close the database; it opens again when used."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _connect(self, options: str, patience: float) -> sqlite3.Connection:
        return sqlite3.connect(
            _uri(self._path, options),
            uri=True,
            timeout=patience,
            isolation_level=None,
            check_same_thread=False,
        )


class Reader(_File):
    """Reads a shard, also while it is written or cannot be. One thread at a time.

    A shard that is not there has no entries. Everything raises `sqlite3.Error` where it cannot be read.

    Args:
        folder: Where the database is.
    """

    def read(self, key: str) -> bytes | None:
        """The value of a key."""
        row = self._row(key)
        if row is None and self._connection and identity_of(self._path) != self.identity:
            # Another process has put a new database in the place of this.
            self.close()
            row = self._row(key)
        return None if row is None else row[0]

    def _row(self, key: str) -> tuple[bytes] | None:
        reader = self._connection or self._open()
        return None if reader is None else reader.execute(_READ, (key,)).fetchone()

    def read_many(self, keys: Sequence[str], most_bytes: int) -> dict[str, bytes]:
        """The values of those keys that have one, in one statement; after so many bytes it stops."""
        reader = self._connection or self._open()
        found: dict[str, bytes] = {}
        if reader is not None:
            statement = f"{_READ_MANY}({','.join('?' * len(keys))})"
            # Closed before its end is reached too: while it is open, the log cannot be shortened.
            with contextlib.closing(reader.execute(statement, keys)) as rows:
                for key, value in rows:
                    found[key] = value
                    most_bytes -= len(value)
                    if most_bytes < 0:
                        break
        return found

    def page(self, after: str) -> list[tuple[str, bytes]]:
        """A few hundred keys and values, sorted by key, from the first key after `after` on."""
        reader = self._connection or self._open()
        return [] if reader is None else reader.execute(_PAGE, (after,)).fetchall()

    def newest(self, tag: str, count: int) -> list[tuple[float, str, bytes]]:
        """Unix time, key and value of the rows with a tag that were added last."""
        reader = self._connection or self._open()
        return [] if reader is None else reader.execute(_NEWEST, (tag, count)).fetchall()

    def count(self) -> int:
        """How many rows there are."""
        reader = self._connection or self._open()
        if reader is None:
            return 0
        # Kept by triggers of diskcache's: counting reads the whole index.
        (count,) = reader.execute("SELECT value FROM Settings WHERE key = 'count'").fetchone()
        return int(count)

    def check(self) -> str:
        """SQLite's own check of the database: "ok", or what is wrong."""
        try:
            reader = self._connection or self._open()
            found = [("ok",)] if reader is None else reader.execute("PRAGMA quick_check(1)").fetchall()
        except sqlite3.Error as error:
            return str(error)
        return str(found[0][0])

    def bytes_on_disk(self) -> int:
        """Size of the database and its log."""
        sizes = 0
        for suffix in ("", "-wal"):
            try:
                sizes += Path(self._path + suffix).stat().st_size
            except OSError:
                continue
        return sizes

    def _open(self) -> sqlite3.Connection | None:
        self.identity = identity_of(self._path)
        if self.identity is None:
            return None
        reader = self._connect("mode=rw", READING_PATIENCE)
        try:
            reader.execute("SELECT 1 FROM Cache LIMIT 1").fetchone()
        except sqlite3.OperationalError:
            reader.close()
            if os.access(self.folder, os.W_OK):
                raise
            # SQLite shares its log through a file that it cannot make here. Nobody else can write either.
            reader = self._connect("mode=ro&immutable=1", READING_PATIENCE)
        except sqlite3.Error:
            reader.close()
            raise
        self._connection = reader
        return reader


class Writer(_File):
    """Writes a shard. One thread at a time.

    Args:
        folder: Where the database is.
        journal: SQLite's journal mode.
    """

    def __init__(self, folder: Path, journal: str) -> None:
        super().__init__(folder)
        self._journal = journal
        self._patience = 0.0

    def write(self, rows: Sequence[Row], patience: float) -> None:
        """Store values in one transaction, waiting at most `patience` seconds for the lock.

        Raises:
            sqlite3.Error: they are not stored.
            ReplacedFileError: they went into a database that is no longer there.
        """
        now = time.time()
        self._transact(_WRITE, [(key, now, now, value, tag) for key, value, tag in rows], patience)
        if identity_of(self._path) != self.identity:
            raise ReplacedFileError(f"{self._path} was deleted or exchanged while it was open")

    def delete(self, rows: Sequence[Row], patience: float) -> None:
        """Delete rows by their keys in one transaction.

        Raises:
            sqlite3.Error: they are not deleted.
        """
        self._transact(_DELETE, [(key,) for key, _, _ in rows], patience)

    def _transact(self, statement: str, rows: Sequence[tuple[object, ...]], patience: float) -> None:
        writer = self._connection or self._open(patience)
        if patience != self._patience:
            writer.execute(f"PRAGMA busy_timeout = {round(patience * 1000)}")
            self._patience = patience
        writer.execute("BEGIN IMMEDIATE")
        try:
            writer.executemany(statement, rows)
            writer.execute("COMMIT")
        except sqlite3.Error:
            if writer.in_transaction:
                writer.execute("ROLLBACK")
            raise

    def _open(self, patience: float) -> sqlite3.Connection:
        self.identity = identity_of(self._path)
        if self.identity is None:
            raise ReplacedFileError(f"{self._path} is not there")
        writer = self._connect("mode=rw", patience)
        try:
            # What is committed survives a kill in any case, and a power cut as far as it was flushed.
            writer.execute("PRAGMA synchronous = NORMAL")
            if writer.execute("PRAGMA journal_mode").fetchone()[0] != self._journal:
                # A cache that was moved to another kind of file system.
                writer.execute(f"PRAGMA journal_mode = {self._journal}")
        except sqlite3.Error:
            writer.close()
            raise
        self._connection, self._patience = writer, patience
        return writer


def rescue(folder: Path) -> Iterator[list[Row]]:
    """What can still be read of a damaged database, a few hundred rows at a time.

    It is read from its beginning up to where it is damaged, and then from its end. Whether a value is
    whole, its own checksum tells.
    """
    for direction in ("ASC", "DESC"):
        batch: list[Row] = []
        whole = False
        with (
            contextlib.suppress(sqlite3.Error),
            contextlib.closing(sqlite3.connect(_uri(str(folder / DATABASE), "mode=rw"), uri=True)) as damaged,
        ):
            for row in damaged.execute(f"{_RESCUE} {direction}"):
                batch.append(row)
                if len(batch) == _RESCUED_AT_ONCE:
                    yield batch
                    batch = []
            whole = True
        yield batch
        if whole:
            return


def _uri(path: str, options: str) -> str:
    # By hand, as urllib would be imported for this alone.
    for character in "%?#":
        path = path.replace(character, f"%{ord(character):02x}")
    return f"file:{path}?{options}"
