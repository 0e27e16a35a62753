"""Databases of SQLite from which nothing runs.

Whoever can write a database can put views, triggers and computed columns into it, which run with the next
statement about their tables. They would choose what is read, delete what is written, or never end.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Collection

_READING = (sqlite3.SQLITE_READ, sqlite3.SQLITE_SELECT)
_GUARDED = (sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_ATTACH)


def open_database(
    path: str | os.PathLike[str],
    *,
    timeout: float,
    uri: bool = False,
    counters: Collection[str] = (),
    counted: str | None = None,
    functions: Collection[str] | None = None,
) -> sqlite3.Connection:
    """Open a database, from which nothing runs, without implicit transactions and for every thread.

    Args:
        path: The file, or its URI.
        timeout: How many seconds a statement waits for other processes.
        uri: Whether `path` is a URI.
        counters: As for `forbid_code`.
        counted: As for `forbid_code`.
        functions: As for `forbid_code`.

    Raises:
        sqlite3.Error: it cannot be opened.
    """
    connection = sqlite3.connect(
        path, timeout=timeout, uri=uri, isolation_level=None, check_same_thread=False
    )
    try:
        forbid_code(connection, counters=counters, counted=counted, functions=functions)
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def forbid_code(
    connection: sqlite3.Connection,
    *,
    counters: Collection[str] = (),
    counted: str | None = None,
    functions: Collection[str] | None = None,
) -> None:
    """Make every statement an error that would run a view or a trigger of the database.

    SQLite asks while it prepares a statement, so executing one takes no longer.

    Args:
        connection: The connection, with which nothing was read yet.
        counters: The names of triggers that may read, and update one table.
        counted: That table.
        functions: The functions of SQL that may run; None for all.
    """

    def decide(action: int, first: str | None, second: str | None, _: str | None, inner: str | None) -> int:
        # `inner` is the view or the trigger that wants it.
        if inner is None and action not in _GUARDED:
            return sqlite3.SQLITE_OK
        if action == sqlite3.SQLITE_FUNCTION:
            allowed = functions is None or second in functions
        elif inner is not None:
            updates = action == sqlite3.SQLITE_UPDATE and first == counted
            allowed = inner in counters and (updates or action in _READING)
        else:
            allowed = False
        return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY

    connection.set_authorizer(decide)
    # Computed columns and constraints, too, may use no function that reaches beyond the database.
    connection.execute("PRAGMA trusted_schema = OFF")
