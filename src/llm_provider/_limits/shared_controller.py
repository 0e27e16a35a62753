"""One controller for all processes of a machine that meet the same limit.

What a `_control.Control` has learnt is kept in a SQLite file as soon as something was refused: each question
and each outcome is a transaction, which takes it out, asks or tells it, and puts it back. So sixteen
processes are to the provider what one is. A process that is alone keeps it in its memory, and looks for
others once a second.

| what happens | what follows |
|---|---|
| a process is killed | its lease is freed: another one gives back what it had under way, within a second |
| a process waits for what another has | it asks again every few milliseconds |
| two want the same place | the one with fewer requests under way gets it |
| the file cannot be used | each process goes on by itself, from what it last knew |
| nobody has used it for ten minutes, or the machine was started anew | what it held is forgotten |
| a program is run again within ten minutes | its first refusal tells it all that was learnt |
"""

from __future__ import annotations

import contextlib
import json
import math
import sqlite3
import sys
import uuid
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from .._runtime.leases import Lease, Leases
from .controller import AdaptiveController, _Window
from .headers import Headroom, Level
from .rate_estimator import Mark, RateEstimator, Ticket

T = TypeVar("T")

_LOCK_PATIENCE = 2.0
"""Seconds that a transaction waits for another's, each of which takes a fraction of a millisecond."""
_ASK_AGAIN = 0.03
"""Seconds until a process that waits for others' answers looks again: nobody wakes it."""
_STILL_WAITS = 4 * _ASK_AGAIN
"""Seconds for which one that has asked counts as waiting."""
_LOOK_FOR_DEAD = 1.0
"""Seconds between two looks whether the others are alive."""
_FORGET = 600.0
"""Seconds after which what was learnt may be wrong."""

_CLAIM, _CLAIM_GRACE = 1.0, 0.3
"""Seconds for which a process that is alone keeps the controller in its memory, and for which another one
gives it time to come back for more."""
_STILL_THERE = 5.0
"""Seconds after which one that does nothing is not reckoned with."""

_TABLES = """
    CREATE TABLE IF NOT EXISTS scope (
        name TEXT PRIMARY KEY, control TEXT, version INTEGER, used REAL, claimed_by TEXT, claimed_until REAL
    );
    CREATE TABLE IF NOT EXISTS owner (
        scope TEXT, owner TEXT, in_flight INTEGER, asked REAL, seen REAL, PRIMARY KEY (scope, owner)
    );
    CREATE TABLE IF NOT EXISTS ticket (
        scope TEXT, number INTEGER, owner TEXT, facts TEXT, PRIMARY KEY (scope, number)
    );
"""
_FORGETTING = (
    "DELETE FROM ticket WHERE scope = ?",
    "DELETE FROM owner WHERE scope = ?",
    "DELETE FROM scope WHERE name = ?",
)


class SharedControllerWarning(UserWarning):
    """The file that processes share cannot be used; each goes on by itself."""


class SharedStateFile:
    """The file, as one process has it open; lives on one loop.

    Args:
        directory: Where the file and the leases are; made if it is missing. None if that is no disk of this
            machine.
        quiet: Whether it may be unusable without anybody being told.
    """

    def __init__(self, directory: Path | None, *, quiet: bool = False) -> None:
        self.owner = uuid.uuid4().hex
        self._directory = directory
        self._leases = Leases(None if directory is None else directory / "leases")
        self._life: Lease | None = None
        self._connection: sqlite3.Connection | None = None
        self._quiet = quiet
        self.broken = False

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            if self._directory is None:
                raise OSError("the cache directory is on a network")
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            path = self._directory / "rate-control.sqlite"
            connection = sqlite3.connect(path, timeout=_LOCK_PATIENCE, isolation_level=None)
            path.chmod(0o600)
            # What is lost with the machine's power is forgotten anyway.
            connection.execute("PRAGMA synchronous = off")
            connection.execute("PRAGMA journal_mode = wal")
            connection.executescript(_TABLES)
            self._connection = connection
            # Held as long as this process lives, and no longer.
            self._life = self._leases.take(self.owner)
            if not self._leases.exclusive:
                raise OSError("there are no locks that tell whether a process is alive")
        return self._connection

    def run(self, work: Callable[[sqlite3.Connection], T]) -> T | None:
        """The result of work on the file, locked against the others; None where the file cannot be used."""
        if self.broken:
            return None
        try:
            connection = self._open()
            connection.execute("BEGIN IMMEDIATE")
            result = work(connection)
            connection.execute("COMMIT")
        except (OSError, ImportError, sqlite3.Error) as error:
            self._give_up(error)
            return None
        return result

    def _give_up(self, error: Exception) -> None:
        self.broken = True
        with contextlib.suppress(sqlite3.Error):
            if self._connection is not None and self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        if self._quiet:
            return
        # Where warnings are made errors, the call is served all the same.
        with contextlib.suppress(SharedControllerWarning):
            warnings.warn(
                f"rate control is not shared with other processes: {error} ({self._directory})",
                SharedControllerWarning,
                stacklevel=2,
            )

    def has_ended(self, owner: str) -> bool:
        """Whether the process of an owner has ended."""
        if owner == self.owner:
            return False
        lease = self._leases.take(owner)
        if lease is not None:
            lease.release(finished=False)
        return lease is not None

    def close(self) -> None:
        """Close the file; what this process had under way is given back by the others."""
        self.broken = True
        if self._life is not None:
            self._life.release(finished=False)
        self._leases.close()
        if self._connection is not None:
            self._connection.close()


class SharedController:
    """The controller of a scope that the processes of a machine share; a `Controller`.

    | state | entered by | where the controller is |
    |---|---|---|
    | apart | the start, unless `at_once` | in memory; nobody knows of it |
    | claimed | nobody else uses the file | in memory; stored once a second, when others are looked for |
    | shared | others use it too | in the file; a transaction takes it out and puts it back |

    Args:
        file: Where it is kept.
        scope: The scope's name, the same in every process.
        from_start: Whether it is shared before anything was refused.
    """

    def __init__(self, file: SharedStateFile, scope: str, *, from_start: bool = True) -> None:
        self._file = file
        self._scope = scope
        self._control = AdaptiveController()
        self._version = 0
        self._mine_until = -math.inf if from_start else math.inf
        """Until then nobody else touches the controller."""
        self._not_before = -math.inf
        self._own = 0
        self._unknown: set[Ticket] = set()
        """Tickets under way that the file does not know."""
        self._former: set[Ticket] = set()
        """Tickets of a controller that was given up for the others'."""
        self._headrooms: dict[int, Headroom] = {}
        self._looked = -math.inf

    @property
    def in_flight(self) -> int:
        """Requests under way, those of the other processes included."""
        return self._control.in_flight

    @property
    def gate(self) -> float:
        """Nothing is sent before; seconds of the monotonic clock."""
        return max(self._control.gate, self._not_before)

    @property
    def refusals(self) -> int:
        """Answers so far that said "too much", to any process."""
        return self._control.refusals

    @property
    def rate(self) -> float:
        """Requests a second that all processes may send together."""
        return self._control.rate

    @property
    def window(self) -> float:
        """Requests that all processes may have in flight together."""
        return self._control.window

    @property
    def open(self) -> bool:
        """Whether no refusal has shown yet that there is a limit on the rate."""
        return self._control.open

    def admit(self, now: float, cost: float, max_in_flight: int, at_once: int) -> Ticket | float:
        """A ticket for a request that may be sent now, else when to ask again."""
        if self._own >= max_in_flight:
            return math.inf
        granted: Ticket | float | None = None
        if now < self._not_before:
            return self._not_before
        if now >= self._mine_until:
            granted = self._file.run(lambda connection: self._admit(connection, now, cost, at_once))
            if granted is None:
                self._go_alone()
        if granted is None:
            granted = self._control.admit(now, cost, sys.maxsize, at_once)
            if isinstance(granted, Ticket):
                self._unknown.add(granted)
        if isinstance(granted, Ticket):
            self._own += 1
        return granted

    def on_headers(self, ticket: Ticket, headroom: Headroom) -> None:
        """Take in the headers of an answer, together with what it was."""
        self._headrooms[ticket.number] = headroom

    def succeeded(self, now: float, ticket: Ticket, *, cost: float | None = None) -> None:
        """The provider served a request, which used so many tokens."""
        self._end(ticket, now, lambda control: control.succeeded(now, ticket, cost=cost))

    def refused(self, now: float, ticket: Ticket, retry_after: float | None = None) -> None:
        """The provider refused a request because of a limit."""
        self._end(ticket, now, lambda control: control.refused(now, ticket, retry_after))
        self._join(now)

    def overloaded(self, now: float, ticket: Ticket, retry_after: float | None = None) -> None:
        """The provider has too much to do."""
        self._end(ticket, now, lambda control: control.overloaded(now, ticket, retry_after))
        self._join(now)

    def failed(self, now: float, ticket: Ticket) -> None:
        """A request broke or timed out."""
        self._end(ticket, now, lambda control: control.failed(now, ticket))

    def cancelled(self, ticket: Ticket) -> None:
        """A request was given up while it was under way."""
        self._end(ticket, ticket.at, lambda control: control.cancelled(ticket))

    def withdrawn(self, ticket: Ticket) -> None:
        """A request was given up before it was sent."""
        self._end(ticket, ticket.at, lambda control: control.withdrawn(ticket))

    def _end(self, ticket: Ticket, now: float, tell: Callable[[AdaptiveController], None]) -> None:
        headroom = self._headrooms.pop(ticket.number, None)

        def told(control: AdaptiveController) -> None:
            if headroom is not None:
                control.on_headers(ticket, headroom)
            tell(control)

        if ticket in self._former:
            # What it says is about a controller that is no more.
            self._former.remove(ticket)
        elif ticket in self._unknown:
            self._unknown.remove(ticket)
            told(self._control)
        elif self._file.run(lambda connection: self._give_back(connection, ticket, now, told)) is None:
            self._go_alone()
            told(self._control)
        self._own -= 1

    def _join(self, now: float) -> None:
        """Look for other processes, as there is a limit that they may share."""
        if self._mine_until == math.inf and not self._file.broken:
            self._mine_until, self._not_before = -math.inf, self._control.gate
            if self._file.run(lambda connection: self._meet(connection, now)) is None:
                self._go_alone()

    def _go_alone(self) -> None:
        """The file cannot be used: what the others have under way is not known any more."""
        if self._mine_until != math.inf:
            self._mine_until = math.inf
            self._control.forget(self._own - len(self._former))

    # --- in a transaction ------------------------------------------------------------------------------

    def _meet(self, connection: sqlite3.Connection, now: float) -> bool:
        if self._load(connection, now) is not None:
            self._store(connection, now)
        return True

    def _admit(self, connection: sqlite3.Connection, now: float, cost: float, at_once: int) -> Ticket | float:
        control = self._load(connection, now)
        if control is None:
            self._note(connection, now, self._own, waits=True)
            return now + _ASK_AGAIN
        ready = control.ready_at(now, cost, sys.maxsize, at_once)
        alone = self._is_alone(connection, now)
        if ready > now or (not alone and self._must_yield(connection, now)):
            self._note(connection, now, self._own, waits=True)
            if alone:
                self._store(connection, now)
                return ready
            return min(max(ready, now), now + _ASK_AGAIN)
        ticket = control.sent(now, cost, at_once)
        self._unknown.add(ticket)
        self._note(connection, now, self._own + 1, waits=False)
        self._store(connection, now)
        return ticket

    def _give_back(
        self,
        connection: sqlite3.Connection,
        ticket: Ticket,
        now: float,
        told: Callable[[AdaptiveController], None],
    ) -> bool:
        control = self._load(connection, now)
        row = (self._scope, ticket.number, self._file.owner)
        query = "DELETE FROM ticket WHERE scope = ? AND number = ? AND owner = ?"
        # One that is not there was given back already: its process was taken for dead.
        if connection.execute(query, row).rowcount and control is not None:
            told(control)
            self._note(connection, now, self._own - 1, waits=None)
            self._store(connection, now)
        return True

    def _load(self, connection: sqlite3.Connection, now: float) -> AdaptiveController | None:
        """The controller as the last process has left it; None while another one has it in its memory."""
        query = "SELECT control, version, used, claimed_by, claimed_until FROM scope WHERE name = ?"
        row = connection.execute(query, (self._scope,)).fetchone()
        if row is None or not -_FORGET < now - row[2] < _FORGET:
            # Times of before the machine was started are in the future, or long ago.
            for statement in _FORGETTING:
                connection.execute(statement, (self._scope,))
            if self._version:
                self._adopt(AdaptiveController(), 0)
        elif row[3] not in (None, self._file.owner) and now < row[4]:
            return None
        elif row[1] != self._version:
            self._adopt(_restored(row[0]), row[1])
            if row[3] is not None:
                self._count(connection)
        if now - self._looked > _LOOK_FOR_DEAD:
            self._looked = now
            if self._bury(connection):
                self._store(connection, now)
        return self._control

    def _adopt(self, control: AdaptiveController, version: int) -> None:
        self._control, self._version = control, version
        self._former |= self._unknown
        self._unknown.clear()

    def _store(self, connection: sqlite3.Connection, now: float) -> None:
        """Leave the controller to the others; where there are none, keep it for a while."""
        self._version += 1
        claimed_by = claimed_until = None
        if self._is_alone(connection, now):
            self._mine_until = now + _CLAIM
            claimed_by, claimed_until = self._file.owner, self._mine_until + _CLAIM_GRACE
        else:
            self._mine_until = -math.inf
            rows = [
                (self._scope, ticket.number, self._file.owner, json.dumps(_state(ticket)))
                for ticket in self._unknown
            ]
            connection.executemany("INSERT OR REPLACE INTO ticket VALUES (?, ?, ?, ?)", rows)
            self._unknown.clear()
        row = (self._scope, json.dumps(_state(self._control)), self._version, now, claimed_by, claimed_until)
        connection.execute("INSERT OR REPLACE INTO scope VALUES (?, ?, ?, ?, ?, ?)", row)

    def _note(
        self, connection: sqlite3.Connection, now: float, in_flight: int, *, waits: bool | None
    ) -> None:
        """Tell the others what this process has under way, and whether it waits; None if as before."""
        asked = None if waits is None else now if waits else 0.0
        connection.execute(
            "INSERT INTO owner VALUES (?, ?, ?, ifnull(?, 0), ?) ON CONFLICT DO UPDATE SET "
            "in_flight = excluded.in_flight, asked = iif(?, excluded.asked, asked), seen = excluded.seen",
            (self._scope, self._file.owner, in_flight, asked, now, waits is not None),
        )

    def _is_alone(self, connection: sqlite3.Connection, now: float) -> bool:
        query = "SELECT 1 FROM owner WHERE scope = ? AND owner != ? AND (in_flight > 0 OR seen > ?) LIMIT 1"
        row = (self._scope, self._file.owner, now - _STILL_THERE)
        return connection.execute(query, row).fetchone() is None

    def _must_yield(self, connection: sqlite3.Connection, now: float) -> bool:
        """Whether another process waits for the same and has less under way."""
        query = "SELECT 1 FROM owner WHERE scope = ? AND owner != ? AND in_flight < ? AND asked > ? LIMIT 1"
        row = (self._scope, self._file.owner, self._own, now - _STILL_WAITS)
        return connection.execute(query, row).fetchone() is not None

    def _bury(self, connection: sqlite3.Connection) -> bool:
        """Give back what dead processes had under way; whether there was one."""
        owners = connection.execute("SELECT owner FROM owner WHERE scope = ?", (self._scope,)).fetchall()
        dead = [owner for (owner,) in owners if self._file.has_ended(owner)]
        for owner in dead:
            place = (self._scope, owner)
            query = "SELECT facts FROM ticket WHERE scope = ? AND owner = ?"
            for (facts,) in connection.execute(query, place).fetchall():
                self._control.cancelled(_ticket(facts))
            connection.execute("DELETE FROM ticket WHERE scope = ? AND owner = ?", place)
            connection.execute("DELETE FROM owner WHERE scope = ? AND owner = ?", place)
        if dead:
            self._count(connection)
        return bool(dead)

    def _count(self, connection: sqlite3.Connection) -> None:
        """Leave out what a process had in its memory alone, which does not come back to it."""
        query = "SELECT count(*) FROM ticket WHERE scope = ?"
        (known,) = connection.execute(query, (self._scope,)).fetchone()
        self._control.forget(known + len(self._unknown))


# --- a controller as JSON ----------------------------------------------------------------------------------

_PARTS = {part.__name__: part for part in (AdaptiveController, _Window, RateEstimator, Mark, Level, Ticket)}
_PRIVATE = "_random"
"""Of a controller, what is not learnt: each process has its own jitter."""


def _state(value: Any) -> Any:
    """Numbers, and objects of numbers as [class, attributes]; infinities are JSON's extension."""
    kind = type(value).__name__
    if kind in _PARTS:
        names = getattr(value, "__slots__", None) or vars(value)
        return {"kind": kind, **{name: _state(getattr(value, name)) for name in names if name != _PRIVATE}}
    if isinstance(value, (tuple, list)):
        return [_state(item) for item in value]
    return value


def _value(state: Any) -> Any:
    if isinstance(state, dict):
        part = _PARTS[state.pop("kind")]
        made = part.__new__(part)
        for name, value in state.items():
            setattr(made, name, _value(value))
        return made
    return [_value(item) for item in state] if isinstance(state, list) else state


def _restored(text: str) -> AdaptiveController:
    """A controller as it was stored; a new one where another version of it has stored it."""
    fresh = AdaptiveController()
    with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError):
        stored = _value(json.loads(text))
        stored._random = fresh._random  # noqa: SLF001  # the one attribute that is not stored
        if vars(stored).keys() == vars(fresh).keys():
            return stored  # type: ignore[no-any-return]  # what `_value` makes is known at run time only
    return fresh


def _ticket(facts: str) -> Ticket:
    made: Ticket = _value(json.loads(facts))
    return made
