"""The limits of the scopes of one client, and where their states are.

All processes of a machine that have the same cache directory share the states. Each start and each end of
a request is a transaction on the file of the shared rate control: it reads the last minute of each limit,
changes it, and writes it back. If the file cannot be used, each process goes on by itself, from the last
minute that it has read. The requests in flight of a process that was killed are given back within a second;
what it has sent counts on.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from ..._core.errors import RequestError
from ..._core.pace.call_limits import group_of
from ..._core.pace.state import Ticket
from ..._core.runtime import clock, randomness
from ..._core.runtime.warning import warn_user
from .limit import Limit, LimitKey
from .states import NAMES, LimitState

if TYPE_CHECKING:
    import sqlite3

    from ..shared_pace.shared_controller import SharedStateFile

T = TypeVar("T")

_LOOK_FOR_DEAD = 1.0
"""Seconds between two checks whether the other clients are alive."""


_LOCAL: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, LimitState]] = (
    weakref.WeakKeyDictionary()
)
"""The states that the clients of an event loop have used, by name."""


class Counts:
    """The states of one client's limits: in the file of the shared rate control, else in this process."""

    def __init__(self, file: SharedStateFile | None) -> None:
        self.owner = randomness.make_token(16) if file is None else file.owner
        """The client, by a random name."""
        self._file = file
        self._states = _LOCAL.setdefault(asyncio.get_running_loop(), {})
        self._used: dict[str, float] = {}
        """The names in use, and when it was last checked whether their other clients are alive."""

    def run(self, names: Sequence[str], work: Callable[[list[LimitState]], T]) -> T:
        """The result of work on some states, which no other client changes meanwhile."""
        for name in names:
            self._used.setdefault(name, -math.inf)
        if self._file is not None:
            done = self._file.run(partial(self._run, names, work))
            if done is not None:
                return done[0]
            self._file = None
            for name in self._used:
                self._states.setdefault(name, LimitState()).leave_others(self.owner)
        return work([self._states.setdefault(name, LimitState()) for name in names])

    def _run(
        self, names: Sequence[str], work: Callable[[list[LimitState]], T], connection: sqlite3.Connection
    ) -> tuple[T]:
        assert self._file is not None
        states = {name: _load(connection, name) for name in names}
        now = clock.monotonic()
        for name, state in states.items():
            if now - self._used[name] > _LOOK_FOR_DEAD:
                self._used[name] = now
                for owner in filter(self._file.has_ended, state.owners):
                    state.leave(owner)
        result = work(list(states.values()))
        rows = [(name, json.dumps(state.to_state())) for name, state in states.items()]
        connection.executemany("INSERT OR REPLACE INTO limit_v1 VALUES (?, ?)", rows)
        # If the file cannot be used any more, this process goes on from here.
        self._states.update(states)
        return (result,)

    def close(self) -> None:
        """Forget what this client limits and has in flight."""
        self.run(list(self._used), self._leave)

    def _leave(self, states: list[LimitState]) -> None:
        for state in states:
            state.leave(self.owner)


def _load(connection: sqlite3.Connection, name: str) -> LimitState:
    """A limit as it was stored; a new one if that is damaged."""
    row = connection.execute("SELECT state FROM limit_v1 WHERE name = ?", (name,)).fetchone()
    try:
        return LimitState() if row is None else LimitState(*json.loads(row[0]))
    except (ValueError, TypeError):
        return LimitState()


class ScopeLimits:
    """The limits of one scope: of its model, of its provider, and of everything.

    `limits` has the name of each, which all clients and processes have in common, and what the user calls it.
    """

    def __init__(self, counts: Counts, limits: Sequence[tuple[str, str, Limit]]) -> None:
        self._counts, self._limits = counts, limits
        self._names = [name for name, _, _ in limits]
        self._started: dict[Ticket, tuple[float, float, float]] = {}
        """When each request in flight started, and its estimated and its charged tokens."""
        self._is_warned = False
        self.holds_back = False
        """Whether the last request that asked had to wait."""

    def __str__(self) -> str:
        return " and ".join(f"{key!r}: {limit}" for _, key, limit in self._limits)

    def refuse_larger(self, tokens: float) -> None:
        """Raise a `RequestError` for a request that no minute has room for."""
        for _, key, limit in self._limits:
            if limit.tpm is not None and tokens > limit.tpm:
                raise RequestError(
                    f"the request has about {tokens:,.0f} tokens with its longest answer, limits[{key!r}] "
                    f"allows tpm={limit.tpm:,}: set a lower max_tokens, shorten it, or raise the limit"
                )

    def admit(self, now: float, tokens: float) -> float:
        """Count a request that starts now, and return `now`; or return the time to ask again."""
        owner, lower = self._counts.owner, ""

        def take(states: list[LimitState]) -> float:
            nonlocal lower
            for state, (_, key, limit) in zip(states, self._limits, strict=True):
                state.join(owner, limit)
                lowest = state.find_lowest()
                own = [getattr(limit, name) for name in NAMES]
                if any(
                    low < (math.inf if mine is None else mine) for low, mine in zip(lowest, own, strict=True)
                ):
                    numbers = zip(NAMES, lowest, strict=True)
                    text = ", ".join(f"{name}={low:.0f}" for name, low in numbers if low < math.inf)
                    lower = f"limits[{key!r}] is {limit} here, and other clients have {text}: the lower holds"
            ready = max(state.ready_at(now, tokens) for state in states)
            if ready <= now:
                for state in states:
                    state.take(owner, now, tokens)
            return ready

        ready = self._counts.run(self._names, take)
        if lower and not self._is_warned:
            self._is_warned = True
            # Where warnings are errors, the call is still served.
            with contextlib.suppress(UserWarning):
                warn_user(lower)
        self.holds_back = ready > now
        return ready

    def settle(self, granted: Ticket | float, now: float, tokens: float) -> None:
        """Note the ticket of the request that was admitted; without one it is not sent yet."""
        if isinstance(granted, Ticket):
            self._started[granted] = now, tokens, tokens
        else:
            self._end(now, -tokens, starts=-1)

    def charge(self, ticket: Ticket, tokens: float) -> None:
        """Note the tokens of an answer, which count in place of the estimate."""
        if ticket in self._started:
            self._started[ticket] = (*self._started[ticket][:2], tokens)

    def end(self, ticket: Ticket, *, withdrawn: bool) -> None:
        """Note the end of a request. One that is withdrawn was not sent."""
        if ticket in self._started:
            started, estimated, charged = self._started.pop(ticket)
            self._end(started, (0.0 if withdrawn else charged) - estimated, starts=-withdrawn)

    def _end(self, started: float, tokens: float, *, starts: int) -> None:
        owner = self._counts.owner

        def work(states: list[LimitState]) -> None:
            for state in states:
                state.end(owner, started, tokens, starts=starts)

        self._counts.run(self._names, work)


def make_scope_limits(
    limits: Mapping[LimitKey, tuple[str, Limit]],
    counts: Counts,
    provider: str,
    base_url: str | None,
    model: str,
    identity: str,
) -> ScopeLimits | None:
    """The limits of a scope; None if the user has none for it.

    Each counts the requests of one account, as providers do. `openai/*` counts all models of the account
    together, and `*` all models of each account.
    """
    group = group_of(model)
    rows = []
    for key in ((provider, group), (provider, "*"), ("*", "*")):
        if key in limits:
            written, limit = limits[key]
            rows.append((" ".join((provider, str(base_url), key[1], identity, key[0])), written, limit))
    return ScopeLimits(counts, rows) if rows else None
