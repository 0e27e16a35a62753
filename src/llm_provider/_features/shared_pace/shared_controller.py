"""Shares one controller between all processes of a machine that have the same limit.

After the first refusal, the state of the `AdaptiveController` is stored in a SQLite file. Each question and
each outcome is then a transaction that reads the controller, uses it, and writes it back. So sixteen
processes send to the provider like one. While no other process uses the file, the controller is in the memory
of its process, which asks for others once a second.

| event | effect |
|---|---|
| a process is killed | its lease is freed, and another process gives its requests back within a second |
| a process waits for answers to another one | it asks again every few milliseconds |
| two processes want the same slot | the one with fewer requests in flight gets it |
| the file is damaged | a new one takes its place, and the state is learnt again |
| the file cannot be used | each process continues by itself, from its last state |
| the file was not used for ten minutes, or the machine was restarted | the state is forgotten |
| another version of the library has stored the state | the state is forgotten |
| a program is run again within ten minutes | its first refusal gives it the learnt state |
"""

import contextlib
import functools
import json
import math
import sqlite3
import sys
from collections.abc import Callable, Collection
from operator import attrgetter
from pathlib import Path
from typing import TypeVar

from ..._core.pace.controller import AdaptiveController
from ..._core.pace.headers import Headroom
from ..._core.pace.state import Ticket
from ..._core.runtime import randomness
from ..._core.runtime.databases import is_corrupt, make_lock, open_database, remove_database
from ..._core.runtime.files import identity_of, make_folder
from ..._core.runtime.leases import Lease, check_own_directory, hold
from ..._core.runtime.warning import warn_user

T = TypeVar("T")

_LOCK_PATIENCE = 2.0
"""Seconds that a transaction waits for another one, which takes a fraction of a millisecond."""
_ASK_AGAIN = 0.03
"""Seconds until a process that waits for answers to other processes asks again: nothing wakes it."""
_STILL_WAITS = 4 * _ASK_AGAIN
"""Seconds for which a process counts as waiting after it has asked."""
_LOOK_FOR_DEAD = 1.0
"""Seconds between two checks whether the other processes are alive."""
_FORGET = 600.0
"""Seconds after which the learnt state may be wrong."""

_CLAIM, _CLAIM_GRACE = 1.0, 0.3
"""Seconds for which the only process has the controller in its memory, and seconds that another
process grants it to claim the controller again."""
_STILL_THERE = 5.0
"""Seconds after which an idle process is ignored."""

# The names of the tables have a version. Each version of the library sees only the tables that it knows.
_TABLES = """
    CREATE TABLE IF NOT EXISTS scope_v2 (
        name TEXT PRIMARY KEY, state TEXT, revision INTEGER, used REAL, claimed_by TEXT, claimed_until REAL
    );
    CREATE TABLE IF NOT EXISTS owner_v2 (
        scope TEXT, owner TEXT, in_flight INTEGER, asked REAL, seen REAL, PRIMARY KEY (scope, owner)
    );
    CREATE TABLE IF NOT EXISTS ticket_v2 (
        scope TEXT, number INTEGER, owner TEXT, state TEXT, PRIMARY KEY (scope, number)
    );
    CREATE TABLE IF NOT EXISTS limit_v1 (name TEXT PRIMARY KEY, state TEXT);
"""
_FORGET_SCOPE = (
    "DELETE FROM ticket_v2 WHERE scope = ?",
    "DELETE FROM owner_v2 WHERE scope = ?",
    "DELETE FROM scope_v2 WHERE name = ?",
)
_UNKNOWN_REVISION = -1
"""Differs from the revision of every stored state."""


class SharedControllerWarning(UserWarning):
    """The file that processes share cannot be used, so each process continues by itself."""


class SharedStateFile:
    """The shared file, as one process and event loop has it open; a `quiet` one does not warn.

    The directory has the file and the leases, and is None if it would be on a network.
    """

    def __init__(self, directory: Path | None, *, quiet: bool = False) -> None:
        self.owner = randomness.make_token(16)
        self._lock = make_lock()
        self._directory = directory
        self._leases = (directory or Path()) / "leases"
        self._life: Lease | None = None
        self._connection: sqlite3.Connection | None = None
        self._quiet = quiet
        self.broken = False

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            if self._directory is None:
                raise OSError("the cache directory is on a network")
            make_folder(self._directory)
            check_own_directory(self._directory)
            path = self._directory / "rate-control.sqlite"
            if path.is_symlink():
                raise OSError(f"{path} is a symbolic link")
            # It is held as long as this process lives. Where there are no locks, nothing waits for SQLite's.
            self._life = self._life or hold(self._leases, self.owner)
            identity, prepare = identity_of(path), functools.partial(_make_tables, path)
            try:
                self._connection = open_database(path, timeout=_LOCK_PATIENCE, prepare=prepare)
            except sqlite3.DatabaseError as error:
                if not is_corrupt(error):
                    raise
                # The state is learnt again within seconds.
                remove_database(path, identity)
                self._connection = open_database(path, timeout=_LOCK_PATIENCE, prepare=prepare)
        return self._connection

    def run(self, work: Callable[[sqlite3.Connection], T]) -> T | None:
        """The result of work in a transaction, rolled back if it raises; None if the file is unusable."""
        if self.broken:
            return None
        try:
            with self._lock, self._open() as connection:  # commits, or rolls back
                connection.execute("BEGIN IMMEDIATE")
                return work(connection)
        except (OSError, sqlite3.Error) as error:
            self._give_up(error)
            return None

    def _give_up(self, error: Exception) -> None:
        self.broken = True
        if self._quiet:
            return
        # Where warnings are turned into errors, the call is still served.
        with contextlib.suppress(SharedControllerWarning):
            warn_user(
                f"rate control is not shared with other processes: {error} ({self._directory})",
                SharedControllerWarning,
            )

    def has_ended(self, owner: str) -> bool:
        if owner == self.owner:
            return False
        lease = hold(self._leases, owner)
        if lease is not None:
            lease.release()
        return lease is not None

    def close(self) -> None:
        """Close the file. The other processes give back the requests of this one."""
        self.broken = True
        if self._life is not None:
            self._life.release()
        if self._connection is not None:
            self._connection.close()


def _make_tables(path: Path, connection: sqlite3.Connection) -> None:
    path.chmod(0o600)
    # A restart of the machine makes the state useless, so it need not survive a power failure.
    connection.executescript(f"PRAGMA synchronous = off; PRAGMA journal_mode = wal; {_TABLES}")


class SharedController:
    """The controller of a scope that the processes of a machine share; a `Controller`.

    Its requests in flight, refusals, rate and window count for all processes together. `scope` has one
    name in all of them. `controller` was used by this process alone, which has requests `in_flight`.

    | state | entered by | place of the controller |
    |---|---|---|
    | claimed | no other process uses the file | in memory; stored once a second, when it asks for others |
    | shared | other processes use the file too | in the file; a transaction reads it and writes it back |
    | apart | the file cannot be used | in memory, unknown to the others |
    """

    def __init__(
        self,
        file: SharedStateFile,
        scope: str,
        controller: AdaptiveController | None = None,
        in_flight: Collection[Ticket] = (),
    ) -> None:
        self._file = file
        self._scope = scope
        self._controller = controller or AdaptiveController()
        self._revision = 0
        """Revision of the stored state that the controller in memory is equal to, or newer than."""
        self._mine_until = -math.inf
        """Until this time no other process uses the controller."""
        self._not_before = self._controller.gate
        self._own = len(in_flight)
        """Requests of this process in flight."""
        self._unknown = set(in_flight)
        """Tickets of requests in flight that are not in the file."""
        self._former: set[Ticket] = set()
        """Tickets of a controller that was replaced by the one in the file."""
        self._headrooms: dict[int, Headroom] = {}
        self._looked = -math.inf

    in_flight = property(attrgetter("_controller.in_flight"))
    refusals = property(attrgetter("_controller.refusals"))
    rate = property(attrgetter("_controller.rate"))
    window = property(attrgetter("_controller.window"))
    open = property(attrgetter("_controller.open"))

    @property
    def gate(self) -> float:
        return max(self._controller.gate, self._not_before)

    def is_limited(self, now: float) -> bool:
        return self._controller.is_limited(now)

    def admit(self, now: float, tokens: float, max_in_flight: int, at_once: int) -> Ticket | float:
        if self._own >= max_in_flight:
            return math.inf
        granted: Ticket | float | None = None
        if now < self._not_before:
            return self._not_before
        if now >= self._mine_until:
            granted = self._run(lambda connection: self._admit(connection, now, tokens, at_once))
            if granted is None:
                self._leave_file()
        if granted is None:
            granted = self._controller.admit(now, tokens, sys.maxsize, at_once)
            if isinstance(granted, Ticket):
                self._unknown.add(granted)
        if isinstance(granted, Ticket):
            self._own += 1
        return granted

    def on_headers(self, ticket: Ticket, headroom: Headroom) -> None:
        """Keep the headers of an answer until its outcome is recorded."""
        self._headrooms[ticket.number] = headroom

    def record_success(self, now: float, ticket: Ticket, *, tokens: float | None = None) -> None:
        self._end(ticket, now, lambda controller: controller.record_success(now, ticket, tokens=tokens))

    def record_refusal(self, now: float, ticket: Ticket, retry_after: float | None = None) -> bool:
        return self._end(ticket, now, lambda shared: shared.record_refusal(now, ticket, retry_after)) is True

    def record_overload(self, now: float, ticket: Ticket, retry_after: float | None = None) -> bool:
        return self._end(ticket, now, lambda shared: shared.record_overload(now, ticket, retry_after)) is True

    def record_failure(self, now: float, ticket: Ticket) -> None:
        self._end(ticket, now, lambda controller: controller.record_failure(now, ticket))

    def record_cancellation(self, ticket: Ticket) -> None:
        self._end(ticket, ticket.at, lambda controller: controller.record_cancellation(ticket))

    def record_withdrawal(self, ticket: Ticket) -> None:
        self._end(ticket, ticket.at, lambda controller: controller.record_withdrawal(ticket))

    def _end(
        self, ticket: Ticket, now: float, record: Callable[[AdaptiveController], bool | None]
    ) -> bool | None:
        """Record an outcome. Returns the result of `record`; None if the outcome is of no use any more."""
        headroom = self._headrooms.pop(ticket.number, None)
        result: bool | None = None

        def record_all(controller: AdaptiveController) -> None:
            nonlocal result
            if headroom is not None:
                controller.on_headers(ticket, headroom)
            result = record(controller)

        self._own -= 1
        if ticket in self._former:
            # The outcome belongs to a controller that was replaced.
            self._former.remove(ticket)
        elif ticket in self._unknown:
            self._unknown.remove(ticket)
            record_all(self._controller)
        elif self._run(lambda connection: self._give_back(connection, ticket, now, record_all)) is None:
            self._leave_file(ending=1)
            record_all(self._controller)
        return result

    def meet(self, now: float) -> None:
        """Take over what the other processes have learnt; if they have learnt nothing, tell them."""
        if self._run(lambda connection: self._meet(connection, now)) is None:
            self._leave_file()

    def _leave_file(self, ending: int = 0) -> None:
        """Continue without the file: it cannot be used, so the requests of other processes are unknown."""
        if self._mine_until != math.inf:
            self._mine_until = math.inf
            self._controller.forget(self._own + ending - len(self._former))

    def _run(self, work: Callable[[sqlite3.Connection], T]) -> T | None:
        """Run work on the file in a transaction; None if the file cannot be used."""
        try:
            return self._file.run(work)
        except BaseException:
            # The file was rolled back, but the controller in memory has perhaps changed: read it again.
            self._revision = _UNKNOWN_REVISION
            raise

    def _meet(self, connection: sqlite3.Connection, now: float) -> bool:
        if self._load(connection, now) is not None:
            self._store(connection, now)
        return True

    def _admit(
        self, connection: sqlite3.Connection, now: float, tokens: float, at_once: int
    ) -> Ticket | float:
        controller = self._load(connection, now)
        if controller is None:
            self._report(connection, now, self._own, waits=True)
            return now + _ASK_AGAIN
        ready = controller.ready_at(now, tokens, sys.maxsize, at_once)
        is_only = self._is_only(connection, now)
        if ready > now or (not is_only and self._must_yield(connection, now)):
            self._report(connection, now, self._own, waits=True)
            if is_only:
                self._store(connection, now)
                return ready
            return min(max(ready, now), now + _ASK_AGAIN)
        ticket = controller.record_request(now, tokens, at_once)
        self._unknown.add(ticket)
        try:
            self._report(connection, now, self._own + 1, waits=False)
            self._store(connection, now)
        except BaseException:
            self._unknown.discard(ticket)  # the caller does not get it
            raise
        return ticket

    def _give_back(
        self,
        connection: sqlite3.Connection,
        ticket: Ticket,
        now: float,
        record: Callable[[AdaptiveController], None],
    ) -> bool:
        controller = self._load(connection, now)
        row = (self._scope, ticket.number, self._file.owner)
        query = "DELETE FROM ticket_v2 WHERE scope = ? AND number = ? AND owner = ?"
        # A missing ticket was given back already, because this process seemed dead.
        if connection.execute(query, row).rowcount and controller is not None:
            record(controller)
            self._report(connection, now, self._own, waits=None)
            self._store(connection, now)
        return True

    def _load(self, connection: sqlite3.Connection, now: float) -> AdaptiveController | None:
        """The controller as the last process has left it; None while another process has it in memory."""
        query = "SELECT state, revision, used, claimed_by, claimed_until FROM scope_v2 WHERE name = ?"
        row = connection.execute(query, (self._scope,)).fetchone()
        if row is None or not -_FORGET < now - row[2] < _FORGET:
            # After a restart of the machine, stored times are in the future or long ago.
            for statement in _FORGET_SCOPE:
                connection.execute(statement, (self._scope,))
            if self._revision:
                self._adopt(AdaptiveController(), 0)
        elif row[3] not in (None, self._file.owner) and now < row[4]:
            return None
        elif row[1] != self._revision:
            self._adopt(_restore(row[0]), row[1])
            if row[3] is not None:
                self._count(connection)
        if now - self._looked > _LOOK_FOR_DEAD:
            self._looked = now
            if self._remove_dead(connection):
                self._store(connection, now)
        return self._controller

    def _adopt(self, controller: AdaptiveController, revision: int) -> None:
        self._controller, self._revision = controller, revision
        self._former |= self._unknown
        self._unknown.clear()

    def _store(self, connection: sqlite3.Connection, now: float) -> None:
        """Write the controller for the other processes. If there are none, keep it for a while."""
        self._revision += 1
        claimed_by = claimed_until = None
        if self._is_only(connection, now):
            self._mine_until = now + _CLAIM
            claimed_by, claimed_until = self._file.owner, self._mine_until + _CLAIM_GRACE
        else:
            self._mine_until = -math.inf
            rows = [
                (self._scope, ticket.number, self._file.owner, json.dumps(ticket.to_state()))
                for ticket in self._unknown
            ]
            connection.executemany("INSERT OR REPLACE INTO ticket_v2 VALUES (?, ?, ?, ?)", rows)
            self._unknown.clear()
        state = json.dumps(self._controller.to_state())
        row = (self._scope, state, self._revision, now, claimed_by, claimed_until)
        connection.execute("INSERT OR REPLACE INTO scope_v2 VALUES (?, ?, ?, ?, ?, ?)", row)

    def _report(
        self, connection: sqlite3.Connection, now: float, in_flight: int, *, waits: bool | None
    ) -> None:
        """Tell the others the requests in flight, and whether this process waits; None: as before."""
        asked_at = None if waits is None else now if waits else 0.0
        connection.execute(
            "INSERT INTO owner_v2 VALUES (?, ?, ?, ifnull(?, 0), ?) ON CONFLICT DO UPDATE SET "
            "in_flight = excluded.in_flight, asked = iif(?, excluded.asked, asked), seen = excluded.seen",
            (self._scope, self._file.owner, in_flight, asked_at, now, waits is not None),
        )

    def _is_only(self, connection: sqlite3.Connection, now: float) -> bool:
        query = (
            "SELECT 1 FROM owner_v2 WHERE scope = ? AND owner != ? AND (in_flight > 0 OR seen > ?) LIMIT 1"
        )
        row = (self._scope, self._file.owner, now - _STILL_THERE)
        return connection.execute(query, row).fetchone() is None

    def _must_yield(self, connection: sqlite3.Connection, now: float) -> bool:
        """Whether another process waits for a slot and has fewer requests in flight."""
        query = (
            "SELECT 1 FROM owner_v2 WHERE scope = ? AND owner != ? AND in_flight < ? AND asked > ? LIMIT 1"
        )
        row = (self._scope, self._file.owner, self._own, now - _STILL_WAITS)
        return connection.execute(query, row).fetchone() is not None

    def _remove_dead(self, connection: sqlite3.Connection) -> bool:
        """Give back the requests of dead processes. Returns whether there was one."""
        owners = connection.execute("SELECT owner FROM owner_v2 WHERE scope = ?", (self._scope,)).fetchall()
        dead = [owner for (owner,) in owners if self._file.has_ended(owner)]
        for owner in dead:
            row = (self._scope, owner)
            query = "SELECT state FROM ticket_v2 WHERE scope = ? AND owner = ?"
            for (state,) in connection.execute(query, row).fetchall():
                # Without a valid ticket, only the number in flight is corrected.
                with contextlib.suppress(ValueError, TypeError):
                    self._controller.record_cancellation(Ticket.from_state(json.loads(state)))
            connection.execute("DELETE FROM ticket_v2 WHERE scope = ? AND owner = ?", row)
            connection.execute("DELETE FROM owner_v2 WHERE scope = ? AND owner = ?", row)
        if dead:
            self._count(connection)
        return bool(dead)

    def _count(self, connection: sqlite3.Connection) -> None:
        """Count the requests in flight again, without those that only a lost controller knew."""
        query = "SELECT count(*) FROM ticket_v2 WHERE scope = ?"
        (known,) = connection.execute(query, (self._scope,)).fetchone()
        self._controller.forget(known + len(self._unknown))


def share(
    file: SharedStateFile,
    scope: str,
    now: float,
    controller: AdaptiveController,
    in_flight: Collection[Ticket],
) -> AdaptiveController | SharedController:
    """Share a controller from its first refusal on: there is a limit, which other processes may have too."""
    if file.broken:
        return controller
    shared = SharedController(file, scope, controller, in_flight)
    shared.meet(now)
    return shared


def _restore(text: str) -> AdaptiveController:
    """A controller as it was stored; a new one if the state is damaged or of another version."""
    try:
        return AdaptiveController.from_state(json.loads(text))
    except (ValueError, TypeError, RecursionError):
        return AdaptiveController()
