"""Single flight: equal calls that are under way at the same time share one request.

The first call of a key leads: its task sends the request. Calls that come until it ends follow and get the
same result. A leader holds a lease on its key (`runtime/leases`). Calls of other processes wait for the end
of the lease and then look into the cache, where the answer is stored before the lease is released. A request
for several parts has a key and a lease for each, so a call that needs some of them follows it for those.

Decisions:

- A leader that is cancelled while others follow continues until its request has ended. `Flights.cancel`
  decides this, so every task that may lead is cancelled through it. The cancellation of the last follower
  cancels the request.
- The request has the timeout and the retries of the leader. The time that a follower waits counts in its
  deadline, which is its own, and not in its timeout, which bounds one attempt. Where the leader's deadline
  forbids a retry, a follower sends the request again.
- A failure reaches every follower of the process as a copy: an exception that several tasks raise would
  collect the tracebacks of all. Other processes only learn that the request has ended. Each then sends its
  own request at once: in sequence, the last of sixteen would wait for fifteen failures. If the leader gives
  up before it has sent one, because of its budget or its deadline, one of them takes its place.
- Only calls that read and write the cache share. "refresh" and "off" each ask for a new answer.
- Streams neither lead nor follow: a follower would have missed the beginning.
"""

from __future__ import annotations

import asyncio
import copy
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Generic, Protocol, TypeVar, cast

from ..events.events import Waits
from ..runtime.leases import Lease, Leases
from ..store.response_cache import ResponseCache
from .call import Call, Sample
from .sent_requests import SentRequests

T = TypeVar("T")


class Flight(Generic[T]):
    """A request under way: a context manager for its leader, which sets `result`."""

    result: T
    _heir: SentRequests | None = None
    """The requests of the call that pays for the leader."""
    _abandoned = False
    _ended_elsewhere: Sequence[str] = ()
    """Keys whose request another process has ended."""

    def __init__(self, flights: Flights[T], keys: Sequence[str], sent: SentRequests, since: float) -> None:
        self.keys, self._flights, self._sent, self._since = keys, flights, sent, since
        self._followers: dict[asyncio.Future[tuple[T, bool]], SentRequests] = {}
        self._leases: list[Lease] = []
        self._wanted = sorted(set(keys))
        """The keys without a lease. All processes take leases in one order, so that no two wait for each
        other: the last of these keys is the next."""

    def __enter__(self) -> Flight[T]:
        leader = asyncio.current_task()
        assert leader is not None
        self._leader = leader
        self._take_wanted_leases()
        self._flights.begin(self, leader)
        return self

    def _take_wanted_leases(self) -> None:
        take = self._flights.leases.take
        while self._wanted and (lease := take(self._wanted[-1])) is not None:
            self._wanted.pop()
            self._leases.append(lease)

    @property
    def is_too_late(self) -> bool:
        """Whether only the leader's deadline forbids to send the request again."""
        return self._sent.is_too_late

    @property
    def elsewhere(self) -> bool:
        """Whether another process asks for a part of this request, or has ended to since the look-up."""
        return bool(self._wanted) or max([each.released_before for each in self._leases]) > self._since

    async def wait_for_other_processes(self) -> None:
        """Wait until no other process asks for a part. Its answer may then be in the cache."""
        while self._wanted:
            text = "another process sends the same request, and its answer is waited for"
            with self._flights.waits.during("an equal call", "elsewhere", text):
                lease = await self._flights.leases.wait(self._wanted[-1])
            key = self._wanted.pop()
            if lease is None:
                self._ended_elsewhere = (*self._ended_elsewhere, key)
            else:
                self._leases.append(lease)
            self._take_wanted_leases()

    def take_leases(self) -> None:
        """Take the leases for calls that come later. A call that does not get one continues without it."""
        for key in self._ended_elsewhere:
            lease = self._flights.leases.take(key)
            if lease is not None:
                self._leases.append(lease)
        self._ended_elsewhere = ()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._flights.end(self, self._leader)
        # A call that sent nothing, as its budget refused it, has no failure that others could meet too.
        is_finished = error is None or (isinstance(error, Exception) and self._sent.attempts > 0)
        for lease in self._leases:
            lease.release(finished=is_finished)
        if not (self._followers or self._abandoned):
            return
        if self._abandoned:
            self._hand_over()
        followers, self._followers = self._followers, {}
        abandoned, self._abandoned = self._abandoned, False
        for follower, sent in followers.items():
            if follower.done():
                continue
            if error is None:
                follower.set_result((self.result, sent is self._heir))
            elif isinstance(error, asyncio.CancelledError):
                follower.cancel()
            else:
                follower.set_exception(_copy(error))
        if abandoned:
            raise asyncio.CancelledError

    async def follow(self, sent: SentRequests) -> tuple[T, bool]:
        """Wait for the result of the leader's request, or raise a copy of the exception that ended it.

        `sent` has the requests of the call that waits. It also returns whether these have taken over the
        requests of the leader, because it has been cancelled.
        """
        follower: asyncio.Future[tuple[T, bool]] = asyncio.get_running_loop().create_future()
        self._followers[follower] = sent
        try:
            return await follower
        finally:
            self._followers.pop(follower, None)
            if self._abandoned and self._followers:
                self._hand_over()
            elif self._abandoned:
                self._flights.cancel(self._leader)
            # The traceback of an exception holds this frame, and the future holds the exception.
            del follower

    def abandon(self) -> bool:
        """Let the leader continue for its followers only; False if there are none."""
        self._abandoned = bool(self._followers)
        if self._abandoned:
            self._hand_over()
        return self._abandoned

    def _hand_over(self) -> None:
        """Let the first call that waits pay for the request, but for what another call has told of."""
        heir = next((sent for follower, sent in self._followers.items() if not follower.done()), None)
        if heir is not self._heir:
            if self._heir is not None:
                self._heir.parts = tuple(part for part in self._heir.parts if part is not self._sent)
            if heir is not None:
                heir.parts += (self._sent,)
            self._heir = self._sent.heir = heir


class Flights(Generic[T]):
    """The flights of one event loop. `leases` keep other processes from sending the same request."""

    def __init__(self, leases: Leases, waits: Waits) -> None:
        self.leases = leases
        self.waits = waits
        self._flights: dict[str, Flight[T]] = {}
        self._led: dict[asyncio.Task[Any], Flight[T]] = {}

    def under_way(self, keys: Sequence[str]) -> Flight[T] | None:
        """A flight of one of these keys, to follow; None if no call leads one."""
        return next(filter(None, map(self._flights.get, keys)), None)

    def lead(self, keys: Sequence[str], sent: SentRequests, since: float) -> Flight[T]:
        """A new flight, to be entered by the task that sends the request, which `sent` counts.

        Calls with one of these keys share it. The caller has found nothing in the cache after the monotonic
        time `since`.
        """
        return Flight(self, keys, sent, since)

    def cancel(self, task: asyncio.Task[Any]) -> None:
        """Cancel a task that may lead a flight. While others follow, it ends with its request."""
        task.add_done_callback(_retrieve)
        flight = self._led.get(task)
        if flight is None or not flight.abandon():
            if flight is not None:
                # A call that comes now must not follow a request that is being cancelled.
                self.end(flight, task)
            task.cancel()

    def begin(self, flight: Flight[T], leader: asyncio.Task[Any]) -> None:
        """Let other calls follow a flight."""
        for key in flight.keys:
            self._flights[key] = flight
        self._led[leader] = flight

    def end(self, flight: Flight[T], leader: asyncio.Task[Any]) -> None:
        """Let no more calls follow a flight."""
        for key in flight.keys:
            if self._flights.get(key) is flight:
                del self._flights[key]
        self._led.pop(leader, None)


def _retrieve(task: asyncio.Task[Any]) -> None:
    # Nothing awaits a cancelled task, and asyncio logs an exception that is never retrieved.
    if not task.cancelled():
        task.exception()


def _copy(error: BaseException) -> BaseException:
    try:
        twin = copy.copy(error)
    except Exception:  # an exception that cannot be copied is shared
        return error
    # A task that raises the copy adds its own traceback to this one.
    twin.__traceback__, twin.__cause__ = error.__traceback__, error.__cause__
    return twin


_PAUSES = (0.05, 2.0)
"""Shortest and longest pause, in seconds, between two looks at a lease of another machine."""


class LeasingCache(Protocol):
    """A cache with a second level, which has a lease for each key."""

    def take_lease(self, name: str) -> Future[bool]:
        """Take the lease on a question; the result is False while another machine asks it."""

    def release_lease(self, name: str) -> None:
        """Release the lease once the answer is in the second level."""


async def deliver_once(
    cache: ResponseCache,
    call: Call[Any],
    parts: Sequence[int],
    find: Callable[[Call[Any], Sequence[int]], Awaitable[list[Sample] | None]],
    deliver: Callable[[Call[Any], Sequence[int]], Awaitable[list[Sample]]],
) -> list[Sample]:
    """The parts of a call that another machine has put into the cache, else delivered ones."""
    name = hashlib.sha256("+".join(map(call.key, parts)).encode()).hexdigest()
    leasing = cast("LeasingCache", cache)
    pause, longest = _PAUSES
    waited = False
    while not await _take_lease(leasing, name):
        waited = True
        await asyncio.sleep(pause)
        pause = min(2 * pause, longest)
        stored = await find(call, parts)
        if stored is not None:
            return stored
    try:
        # The other machine may have finished between the last look and the lease.
        stored = await find(call, parts) if waited else None
        return await deliver(call, parts) if stored is None else stored
    finally:
        leasing.release_lease(name)


async def _take_lease(cache: LeasingCache, name: str) -> bool:
    taking = cache.take_lease(name)
    try:
        return await asyncio.wrap_future(taking)
    except asyncio.CancelledError:
        # The reader's thread may take it all the same.
        taking.add_done_callback(lambda _: cache.release_lease(name))
        raise
