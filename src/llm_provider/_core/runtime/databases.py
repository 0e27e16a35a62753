"""Databases of SQLite: how they are opened, locked, and left alone by forks; nothing in them runs.

Whoever can write a database can put views, triggers and computed columns into it, which run with the next
statement about their tables. They would choose what is read, delete what is written, or never end.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import weakref
from collections import deque
from collections.abc import Callable, Collection
from pathlib import Path
from typing import NamedTuple

from . import clock, files
from .files import Identity, identity_of
from .forks import run_around_forks
from .locks import hold_folder
from .termination import Terminated, is_terminated

_READING = (sqlite3.SQLITE_READ, sqlite3.SQLITE_SELECT)
_GUARDED = (sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_ATTACH)
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_CORRUPT = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


class Allowed(NamedTuple):
    """What the code inside a database may do."""

    counters: Collection[str] = ()
    """The names of triggers that may read, and update one table."""
    counted: str | None = None
    """That table."""
    functions: Collection[str] | None = None
    """The functions of SQL that may run; None for all."""


_NOTHING = Allowed()
_denied: deque[int] = deque(maxlen=1)
"""What `forbid_code` has refused; empty in nearly all processes."""


def open_database(
    path: str | os.PathLike[str],
    *,
    timeout: float,
    uri: bool = False,
    allowed: Allowed = _NOTHING,
    prepare: Callable[[sqlite3.Connection], object] = lambda connection: None,
) -> sqlite3.Connection:
    """Open a database for every thread, without implicit transactions; none of its code runs.

    A connection that cannot be prepared is closed.
    """
    connection = sqlite3.connect(
        path, timeout=timeout, uri=uri, isolation_level=None, check_same_thread=False
    )
    try:
        forbid_code(connection, allowed)
        prepare(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def forbid_code(connection: sqlite3.Connection, allowed: Allowed = _NOTHING) -> None:
    """Make statements that would run a view or a trigger an error, on a connection that has read nothing.

    SQLite asks while it prepares a statement, so executing one takes no longer.
    """
    counters, counted, functions = allowed

    def decide(action: int, first: str | None, second: str | None, _: str | None, inner: str | None) -> int:
        # `inner` is the view or the trigger that wants it.
        if inner is None and action not in _GUARDED:
            return sqlite3.SQLITE_OK
        if action == sqlite3.SQLITE_FUNCTION:
            may = functions is None or second in functions
        elif inner is not None:
            updates = action == sqlite3.SQLITE_UPDATE and first == counted
            may = inner in counters and (updates or action in _READING)
        else:
            may = False
        if not may:
            _denied.append(action)
        return sqlite3.SQLITE_OK if may else sqlite3.SQLITE_DENY

    connection.set_authorizer(decide)
    # Computed columns and constraints, too, may use no function that reaches beyond the database.
    connection.execute("PRAGMA trusted_schema = OFF")


def is_busy(error: Exception) -> bool:
    """Whether an error means that another process still holds the lock."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _BUSY


def is_corrupt(error: Exception) -> bool:
    """Whether an error means a damaged database, or a file that is no database."""
    if not isinstance(error, sqlite3.DatabaseError):
        return False
    code, message = getattr(error, "sqlite_errorcode", 0) & 0xFF, str(error)
    # That of a function has the code of any error.
    is_refused = code == sqlite3.SQLITE_AUTH or message.startswith("not authorized")
    if is_refused and not _denied:
        # SQLite drops what a signal's handler raises while it asks, and then reads that as a refusal.
        raise Terminated if is_terminated() else KeyboardInterrupt
    # An empty file is a database without tables.
    unlike = "no such table", "no such column", "cannot modify Cache because it is a view"
    return is_refused or code in _CORRUPT or message.startswith(unlike)


def remove_database(path: Path, identity: Identity | None) -> None:
    """Delete a damaged database, unless another process has replaced it since it had this identity."""
    with hold_folder(path.parent):
        if identity_of(path) == identity:
            for end in ("", "-wal", "-shm"):
                files.remove_file(Path(f"{path}{end}"))


def make_lock() -> threading.RLock:
    """A lock for the threads that use a database. A fork waits for it, as SQLite has locks of its own.

    Without it the child would find them taken for ever, also those for its other databases.
    """
    lock = threading.RLock()
    _locks.add(lock)
    return lock


_LONGEST_HOLD = 1.0
"""Seconds that a fork waits: a writer may wait much longer for the lock of another process."""
_locks: weakref.WeakSet[threading.RLock] = weakref.WeakSet()
_held: list[threading.RLock] = []


def _before_fork() -> None:
    until = clock.monotonic() + _LONGEST_HOLD
    _held[:] = [lock for lock in list(_locks) if lock.acquire(timeout=max(0.0, until - clock.monotonic()))]


def _after_fork() -> None:
    while _held:
        _held.pop().release()


run_around_forks(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)
