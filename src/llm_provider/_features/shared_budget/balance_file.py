"""The balance of a budget that several processes share: a SQLite file, and a lease for each live process.

    balance   the amounts spent, reserved, uncertain and parked, as decimal text
    claims    each reserved amount, the process that holds it, whether it is parked, and for which batch
    line      the processes that wait for money, in order of arrival

Every change is one transaction, so a process that is killed leaves all of a change or nothing. Its reserved
amounts stay in `claims`. Each process holds a lease (`_core/runtime/leases`), which the kernel frees when the
process dies. A process that has to wait checks the leases of the others, and counts the claims of dead
processes as spent: their requests may have been billed. That of a batch stays reserved, as the process that
collects the batch ends it.

A transaction takes some 50 µs on the event loop. It never waits there for another process: if the file is
locked, it raises `BusyError`, and a timer tries again.

SQLite connections do not survive a fork, not even unused ones. They are closed before a fork, and each
process opens a new one when it needs it. A power cut may lose the last seconds (`synchronous = NORMAL`); a
kill loses nothing.
"""

from __future__ import annotations

import atexit
import contextlib
import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterator
from decimal import Decimal, InvalidOperation
from functools import partial
from pathlib import Path
from typing import TypeVar

from ..._core.errors import RequestError
from ..._core.money.balance import Balance, BusyError
from ..._core.runtime import clock, randomness
from ..._core.runtime.databases import is_busy, open_database
from ..._core.runtime.files import Identity, file_remedy, identity_of
from ..._core.runtime.forks import run_for_each_around_forks
from ..._core.runtime.leases import Lease, hold
from ..._core.runtime.locks import require_locks

T = TypeVar("T")

_APPLICATIONS = {"USD": 1819107940, "tokens": 1819107941}
"""Mark the file as a budget of a unit in its SQLite header; `_SCHEMA` writes the number."""
_SCHEMA = """
    BEGIN IMMEDIATE;
    CREATE TABLE IF NOT EXISTS balance (
        only INTEGER PRIMARY KEY CHECK (only = 1),
        spent TEXT NOT NULL, reserved TEXT NOT NULL, uncertain TEXT NOT NULL, parked TEXT NOT NULL);
    INSERT OR IGNORE INTO balance VALUES (1, '0', '0', '0', '0');
    CREATE TABLE IF NOT EXISTS claims (
        number INTEGER PRIMARY KEY AUTOINCREMENT, holder TEXT NOT NULL, amount TEXT NOT NULL,
        parked INTEGER NOT NULL DEFAULT 0, batch TEXT);
    CREATE TABLE IF NOT EXISTS line (
        number INTEGER PRIMARY KEY AUTOINCREMENT, holder TEXT NOT NULL UNIQUE, looked REAL NOT NULL);
    PRAGMA application_id = {application};
    PRAGMA user_version = 1;
    COMMIT;
"""
_VERSION = 1
"""The version of the schema, which writes the same number. Files from before there were numbers have 0."""
_COLUMNS = {
    "balance": ["only", "spent", "reserved", "uncertain", "parked"],
    "claims": ["number", "holder", "amount", "parked", "batch"],
    "line": ["number", "holder", "looked"],
}

_OPENING_PATIENCE = 10.0
_CLOSING_PATIENCE = 2.0
"""Seconds to wait for the locks of other processes before opening fails, or closing gives up."""
_STALE_SECONDS = 5.0
"""A process that has not polled for so long is stopped (Ctrl-Z, a debugger), and the others do not wait
behind it. Times are of the machine's monotonic clock, which all processes share."""


class FileTransaction:
    """A transaction on a file; `write` saves the balance."""

    def __init__(self, connection: sqlite3.Connection, store: BalanceFile) -> None:
        self._connection = connection
        self._store = store
        self._read = self.balance = _balance(connection)

    def claim(self, amount: Decimal) -> int:
        # A process that was served goes to the end of the queue.
        self.set_waiting(False)
        cursor = self._connection.execute(
            "INSERT INTO claims (holder, amount) VALUES (?, ?)", (self._store.holder, str(amount))
        )
        self.balance = self.balance.reserve(amount)
        assert cursor.lastrowid is not None
        return cursor.lastrowid

    def park(self, number: int, is_parked: bool) -> None:
        row = self._find_claim(number)
        if row is not None and row[1] != is_parked:
            self._connection.execute("UPDATE claims SET parked = ? WHERE number = ?", (is_parked, number))
            self.balance = self.balance.park(row[0] if is_parked else -row[0])

    def end(self, number: int, cost: Decimal | None, batch: str | None) -> None:
        row = self._find_claim(number)
        if row is not None:
            self._connection.execute("DELETE FROM claims WHERE number = ?", (number,))
            self.balance = self.balance.settle(row[0], cost, is_parked=row[1])
        if batch is not None:
            query = "DELETE FROM claims WHERE batch = ? RETURNING amount, parked"
            for amount, is_parked in self._connection.execute(query, (batch,)).fetchall():
                self.balance = self.balance.settle(Decimal(amount), Decimal(0), is_parked=is_parked)

    def name(self, number: int, batch: str) -> None:
        self._connection.execute("UPDATE claims SET batch = ? WHERE number = ?", (batch, number))

    def _find_claim(self, number: int) -> tuple[Decimal, bool] | None:
        """The amount of a claim, and whether it is parked; None if others took this process for dead."""
        row = self._connection.execute(
            "SELECT amount, parked FROM claims WHERE number = ? AND holder = ?", (number, self._store.holder)
        ).fetchone()
        return None if row is None else (Decimal(row[0]), bool(row[1]))

    def is_next(self) -> bool:
        now = clock.monotonic()
        before = self._connection.execute(
            "SELECT 1 FROM line WHERE holder <> :own AND looked BETWEEN :from AND :to"
            " AND number < coalesce((SELECT number FROM line WHERE holder = :own), 1e300) LIMIT 1",
            {"own": self._store.holder, "from": now - _STALE_SECONDS, "to": now + _STALE_SECONDS},
        )
        return before.fetchone() is None

    def set_waiting(self, waiting: bool) -> None:
        if waiting:
            self._connection.execute(
                "INSERT INTO line (holder, looked) VALUES (?, ?)"
                " ON CONFLICT (holder) DO UPDATE SET looked = excluded.looked",
                (self._store.holder, clock.monotonic()),
            )
            self.settle_dead_claims()
        elif self._store.is_waiting:
            self._connection.execute("DELETE FROM line WHERE holder = ?", (self._store.holder,))
        self._store.is_waiting = waiting

    def settle_dead_claims(self) -> None:
        """Count the claims of dead processes as spent, and take these processes out of the queue."""
        others = self._connection.execute(
            "SELECT holder FROM claims WHERE holder NOT IN (:own, '')"
            " UNION SELECT holder FROM line WHERE holder <> :own",
            {"own": self._store.holder},
        ).fetchall()
        for (holder,) in others:
            lease = hold(self._store.leases, holder)
            if lease is None:
                continue
            query = "SELECT amount, parked, batch FROM claims WHERE holder = ?"
            for amount, is_parked, batch in self._connection.execute(query, (holder,)).fetchall():
                if batch is None:
                    self.balance = self.balance.settle(Decimal(amount), None, is_parked=is_parked)
                elif not is_parked:
                    self.balance = self.balance.park(Decimal(amount))
            self._connection.execute("DELETE FROM claims WHERE holder = ? AND batch IS NULL", (holder,))
            self._connection.execute("UPDATE claims SET holder = '', parked = 1 WHERE holder = ?", (holder,))
            self._connection.execute("DELETE FROM line WHERE holder = ?", (holder,))
            lease.release()

    def write(self) -> None:
        if self.balance != self._read:
            self._connection.execute(
                "UPDATE balance SET spent = ?, reserved = ?, uncertain = ?, parked = ?",
                tuple(map(str, self.balance)),
            )


class BalanceFile:
    """The store in a file; one for each `Budget`. `RequestError` says why a file cannot be used.

    SQLite's own files while it is open, and a directory of leases, lie beside it. The path is absolute.
    """

    shared = True

    def __init__(self, path: str, unit: str = "USD") -> None:
        self._unit = unit
        self.leases = Path(f"{path}-leases")
        self.is_waiting = False
        self._path = path
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._identity: Identity | None = None
        self._lease: Lease | None = None
        self._holder = ""
        self._changes: list[Callable[[FileTransaction], None]] = []
        """Ended and parked claims, which the next transaction writes."""
        # From now on a fork waits while this thread is inside SQLite: the child would find its locks taken.
        _open_files.add(self)
        try:
            with self._translate_errors(), contextlib.suppress(FileNotFoundError):
                require_locks(Path(self._path).parent)
            # SQLite does not wait for other processes before it changes the mode of the journal.
            self._try_for(_OPENING_PATIENCE, self._make_tables)
            with self.open_with_patience() as transaction:
                transaction.settle_dead_claims()
        except BusyError:
            raise self._explain_lock() from None

    def _try_for(self, seconds: float, work: Callable[[], T]) -> T:
        """The result of some work, which is tried again while another process has locked the file."""
        deadline = clock.monotonic() + seconds
        while True:
            try:
                with self._lock, self._translate_errors():
                    return work()
            except BusyError:
                if clock.monotonic() > deadline:
                    raise
            clock.sleep(0.002)

    def _make_tables(self) -> None:
        with contextlib.closing(open_database(self._path, timeout=0)) as connection:
            # In this order, as another process may make the tables between the two statements.
            (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
            (application,) = connection.execute("PRAGMA application_id").fetchone()
            own = _APPLICATIONS[self._unit]
            if application != own and application in _APPLICATIONS.values():
                raise RequestError(
                    f"{self._path} is a budget in another unit than {self._unit}: choose another name"
                )
            if application != own and (application or tables):
                raise RequestError(f"{self._path} is a database, but not a budget: choose another name")
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            for table, columns in _COLUMNS.items() if tables else ():
                columns_there = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
                if columns_there != columns or version not in (0, _VERSION):
                    raise RequestError(
                        f"{self._path} is a budget of another version of llm_provider: use that version, or "
                        "choose another name and give the limit that is left"
                    )
            connection.execute("PRAGMA journal_mode = WAL")
            connection.executescript(_SCHEMA.format(application=own))
            _balance(connection)

    def _explain_lock(self) -> RequestError:
        return RequestError(f"the budget's file {self._path} is locked: another process has not left it")

    @property
    def holder(self) -> str:
        """The name of the lease that this process holds."""
        if self._lease is None:
            name = randomness.make_token(8)
            self._lease, self._holder = hold(self.leases, name), name
        return self._holder

    @contextlib.contextmanager
    def open(self) -> Iterator[FileTransaction]:
        with self._lock, self._translate_errors():
            count = len(self._changes)
            with self._connect() as connection:  # commits, or rolls back
                connection.execute("BEGIN IMMEDIATE")
                transaction = FileTransaction(connection, self)
                for change in self._changes[:count]:
                    change(transaction)
                yield transaction
                transaction.write()
            del self._changes[:count]

    @contextlib.contextmanager
    def open_with_patience(self, seconds: float = _OPENING_PATIENCE) -> Iterator[FileTransaction]:
        """`open`, from a thread that may wait some seconds for other processes."""
        with contextlib.ExitStack() as stack:
            yield self._try_for(seconds, lambda: stack.enter_context(self.open()))

    @property
    def is_behind(self) -> bool:
        return bool(self._changes)

    def park(self, claim: int, is_parked: bool) -> None:
        self._changes.append(partial(FileTransaction.park, number=claim, is_parked=is_parked))

    def name(self, claim: int, batch: str) -> None:
        self._changes.append(partial(FileTransaction.name, number=claim, batch=batch))

    def end(self, claim: int, cost: Decimal | None, batch: str | None = None) -> None:
        self._changes.append(partial(FileTransaction.end, number=claim, cost=cost, batch=batch))

    def read(self) -> Balance:
        try:
            return self._try_for(_CLOSING_PATIENCE, lambda: _balance(self._connect()))
        except BusyError:
            # Another process is the first to open the file after a crash, and recovers it.
            raise self._explain_lock() from None

    def close(self, patience: float = 0.0) -> None:
        # Without patience the caller is the garbage collector, which may run anywhere. It may run inside the
        # transaction of another file, which cannot end before this returns. It may also run in a thread for
        # which a fork waits, while the forking thread holds this lock.
        if not self._lock.acquire(blocking=bool(patience)):
            _unwritten.append(self)
            return
        try:
            if self._connection is not None:
                with contextlib.suppress(RequestError), self.open_with_patience(patience) as transaction:
                    transaction.set_waiting(False)
            self._leave()
        except BusyError:
            if self._changes and not patience:
                _unwritten.append(self)
            else:
                self._leave()
        finally:
            self._lock.release()

    def _leave(self) -> None:
        self.disconnect()
        if self._lease is not None:
            self._lease.release()
            self._lease = None

    def disconnect(self) -> None:
        """Close the connection. The next use opens another one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _connect(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = open_database(self._path, timeout=0)
            self._connection.execute("PRAGMA synchronous = NORMAL")
        identity = identity_of(self._path)
        self._identity = self._identity or identity
        if identity is None or identity != self._identity:
            # Other processes would use the new file, and both files would be spent in full.
            raise RequestError(f"the budget's file {self._path} was deleted or replaced while it was in use")
        return self._connection

    @contextlib.contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            if is_busy(error):
                raise BusyError from None
            remedy = file_remedy(Path(self._path))
            raise RequestError(f"the budget's file {self._path} cannot be used: {error}{remedy}") from None
        except (OSError, InvalidOperation, TypeError) as error:
            raise RequestError(f"the budget's file {self._path} cannot be used: {error}") from None

    def before_fork(self) -> None:
        """End the transaction and close the connection before the process is copied."""
        self._lock.acquire()
        self.disconnect()

    def after_fork(self) -> None:
        self._lock.release()

    def start_anew(self) -> None:
        """Begin in the child, to which the parent's claims and lease do not belong."""
        self._lock = threading.RLock()
        self._changes, self._lease, self.is_waiting = [], None, False


def _balance(connection: sqlite3.Connection) -> Balance:
    amounts = connection.execute("SELECT spent, reserved, uncertain, parked FROM balance").fetchone()
    return Balance(*map(Decimal, amounts))


_open_files: weakref.WeakSet[BalanceFile] = weakref.WeakSet()
_unwritten: list[BalanceFile] = []
"""Files that could not be closed when their budget was garbage-collected. They are closed at exit."""


def _close_all() -> None:
    for file in [*_open_files, *_unwritten]:
        file.close(_CLOSING_PATIENCE)


atexit.register(_close_all)
run_for_each_around_forks(
    _open_files,
    before=BalanceFile.before_fork,
    after_in_parent=BalanceFile.after_fork,
    after_in_child=BalanceFile.start_anew,
)
