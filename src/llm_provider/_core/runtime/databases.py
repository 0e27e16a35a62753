"""Databases of SQLite from which nothing runs.

Whoever can write a database can put views, triggers and computed columns into it, which run with the next
statement about their tables. They would choose what is read, delete what is written, or never end.
"""

import os
import sqlite3
from collections.abc import Collection
from typing import NamedTuple

_READING = (sqlite3.SQLITE_READ, sqlite3.SQLITE_SELECT)
_GUARDED = (sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_ATTACH)
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


class Allowed(NamedTuple):
    """What the code inside a database may do."""

    counters: Collection[str] = ()
    """The names of triggers that may read, and update one table."""
    counted: str | None = None
    """That table."""
    functions: Collection[str] | None = None
    """The functions of SQL that may run; None for all."""


_NOTHING = Allowed()


def open_database(
    path: str | os.PathLike[str], *, timeout: float, uri: bool = False, allowed: Allowed = _NOTHING
) -> sqlite3.Connection:
    """Open a database for every thread, without implicit transactions; none of its code runs."""
    connection = sqlite3.connect(
        path, timeout=timeout, uri=uri, isolation_level=None, check_same_thread=False
    )
    try:
        forbid_code(connection, allowed)
    except sqlite3.Error:
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
        return sqlite3.SQLITE_OK if may else sqlite3.SQLITE_DENY

    connection.set_authorizer(decide)
    # Computed columns and constraints, too, may use no function that reaches beyond the database.
    connection.execute("PRAGMA trusted_schema = OFF")


def is_busy(error: Exception) -> bool:
    """Whether an error means that another process still holds the lock."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _BUSY
