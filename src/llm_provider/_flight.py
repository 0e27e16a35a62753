"""Single flight: equal calls that are under way at the same time share one request.

Within a process the first caller starts a task, and all who come until it ends wait for it. The task belongs
to none of them: whoever gives up only leaves, and the last to leave cancels it. Across the processes of a
machine the task holds a lease on its key while it works (`_leases`). Other processes wait for the end of the
lease and look into the cache, where the answer is stored before the lease is released.

Decisions:

- The request under way has the timeout and the retries of the call that started it. Who joins takes its
  outcome. Time spent waiting for another's request is no part of a timeout, which bounds one attempt. It is
  part of a deadline, which is each call's own: who leaves because of it leaves the request to the others.
- A failure reaches all who wait in the process. Each gets a copy of the error: raised by several tasks, one
  exception would collect the tracebacks of all. Other processes learn only that it is over, and each then
  sends its own request, all at once; it is the same with an answer that the cache does not keep. One after
  the other, the last of sixteen would wait for fifteen failures.
- Only calls that read and write the cache share. "refresh" asks for a new answer, "off" for one of its own.
- Streams neither join nor lead: a stream is shown to one user as it comes, and who came later would have
  missed its beginning.
"""

from __future__ import annotations

import asyncio
import copy
import functools
from collections.abc import Awaitable, Callable
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from ._leases import Leases

T = TypeVar("T")


class Outcome(NamedTuple, Generic[T]):
    """What a call gets from a flight."""

    value: T
    paid: bool
    """Whether this is the one call that the request counts for: true for one of those who share it."""


Share: TypeAlias = Callable[[], Outcome[T]]
"""Gives or raises one waiter's share of a flight that has ended; called once by each who takes it."""


class _Flight(Generic[T]):
    """A request under way, and those who wait for it."""

    __slots__ = ("_counted", "_found", "_shared", "task", "waiting")

    def __init__(self) -> None:
        self.task: asyncio.Task[None]
        self.waiting: dict[object, Callable[[Share[T]], object]] = {}
        """Whom to tell of the end, in the order in which they came: the first counts the request."""
        self._shared = self._counted = False
        self._found: Outcome[T] | BaseException | None = None

    @property
    def ended(self) -> bool:
        """Whether its outcome is known."""
        return self._found is not None

    def join(self, ended: Callable[[Share[T]], object]) -> object:
        """Wait for the end; returns what `waiting` has this waiter under."""
        self._shared = self._shared or bool(self.waiting)
        ticket = object()
        self.waiting[ticket] = ended
        return ticket

    def end(self, found: Outcome[T] | BaseException) -> None:
        self._found = found
        waiting, self.waiting = self.waiting, {}
        for ended in waiting.values():
            ended(self.outcome)

    def outcome(self) -> Outcome[T]:
        """One waiter's share of what has come out, or was raised."""
        found = self._found
        assert found is not None
        if isinstance(found, asyncio.CancelledError):
            raise asyncio.CancelledError
        if isinstance(found, BaseException):
            raise _copy(found) if self._shared else found
        paid, self._counted = found.paid and not self._counted, True
        return Outcome(found.value, paid)


class Flights(Generic[T]):
    """The flights of one event loop.

    Args:
        leases: What keeps other processes from sending the same.

    >>> async def work():
    ...     print("sent")
    ...     await asyncio.sleep(0.01)
    ...     return "answer"
    >>> async def nothing_stored():
    ...     return None
    >>> async def example():
    ...     flights = Flights(Leases(None))
    ...     calls = (flights.run("key", work, nothing_stored) for _ in range(3))
    ...     return [(value, paid) for value, paid in await asyncio.gather(*calls)]
    >>> asyncio.run(example())
    sent
    [('answer', True), ('answer', False), ('answer', False)]
    """

    def __init__(self, leases: Leases) -> None:
        self._leases = leases
        self._flights: dict[str, _Flight[T]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(
        self,
        key: str,
        work: Callable[[], Awaitable[T]],
        lookup: Callable[[], Awaitable[T | None]],
    ) -> Outcome[T]:
        """What `work` returns, or what `lookup` finds when another process has done the work.

        Args:
            key: Calls with equal keys share. The caller has just looked and found nothing stored.
            work: Sends the request and stores the answer. Runs in the context of the call that started it.
            lookup: Looks into the cache; None if nothing is there.

        Raises:
            Exception: a copy of what `work` or `lookup` raised.
        """
        waiter: asyncio.Future[Share[T]] = asyncio.get_running_loop().create_future()

        def wake(share: Share[T]) -> None:
            if not waiter.done():
                waiter.set_result(share)

        leave = self.join(key, work, lookup, wake)
        try:
            share = await waiter
        finally:
            leave()
        return share()

    def join(
        self,
        key: str,
        work: Callable[[], Awaitable[T]],
        lookup: Callable[[], Awaitable[T | None]],
        ended: Callable[[Share[T]], object],
    ) -> Callable[[], None]:
        """`run` for who is called back, which takes one task less and fewer turns of the loop.

        Args:
            key: As for `run`, and so `work` and `lookup`.
            work: Sends the request.
            lookup: Looks into the cache.
            ended: Called once, when it is over, with what gives or raises the outcome; it must not raise.

        Returns:
            What gives up waiting: `ended` is not called any more. The last to do so cancels the request.
        """
        flight = self._flights.get(key)
        if flight is None:
            flight = self._start(key, work, lookup)
        return functools.partial(self._leave, key, flight, flight.join(ended))

    def _leave(self, key: str, flight: _Flight[T], ticket: object) -> None:
        if flight.waiting.pop(ticket, None) is not None and not flight.waiting:
            # A call that comes now must not join what is ending.
            self._forget(key, flight)
            flight.task.cancel()

    def _start(
        self, key: str, work: Callable[[], Awaitable[T]], lookup: Callable[[], Awaitable[T | None]]
    ) -> _Flight[T]:
        flight = self._flights[key] = _Flight[T]()
        flight.task = asyncio.get_running_loop().create_task(self._fly(key, flight, work, lookup))
        self._tasks.add(flight.task)
        flight.task.add_done_callback(functools.partial(self._over, key, flight))
        return flight

    def _over(self, key: str, flight: _Flight[T], task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not flight.ended:
            # Cancelled before its first step, it has taken none.
            self._end(key, flight, asyncio.CancelledError())

    async def _fly(
        self,
        key: str,
        flight: _Flight[T],
        work: Callable[[], Awaitable[T]],
        lookup: Callable[[], Awaitable[T | None]],
    ) -> None:
        try:
            found: Outcome[T] | BaseException = await self._found(key, work, lookup)
        except BaseException as error:  # told to who waits, whatever it is
            found = error
        # Here and not in a callback of the task's, which would take the loop another turn.
        try:
            self._end(key, flight, found)
        finally:
            # Its traceback holds this frame.
            del found

    def _end(self, key: str, flight: _Flight[T], found: Outcome[T] | BaseException) -> None:
        self._forget(key, flight)
        flight.end(found)

    def _forget(self, key: str, flight: _Flight[T]) -> None:
        if self._flights.get(key) is flight:
            del self._flights[key]

    async def _found(
        self, key: str, work: Callable[[], Awaitable[T]], lookup: Callable[[], Awaitable[T | None]]
    ) -> Outcome[T]:
        lease = self._leases.take(key)
        look = lease is None or lease.released_before
        if lease is None:
            lease = await self._leases.wait(key)
        finished = True
        try:
            if look:
                found = await lookup()
                if found is not None:
                    return Outcome(found, paid=False)
            if lease is None:
                # For those who come later. Whoever does not get it goes on without.
                lease = self._leases.take(key)
            return Outcome(await work(), paid=True)
        except BaseException as error:
            finished = isinstance(error, Exception)
            raise
        finally:
            if lease is not None:
                lease.release(finished=finished)

    def close(self) -> None:
        """Close the leases' files; what is under way goes on."""
        self._leases.close()


def _copy(error: BaseException) -> BaseException:
    try:
        twin = copy.copy(error)
    except Exception:  # one that cannot be copied is shared
        return error
    # Raised, it grows a traceback of its own in front of this one.
    twin.__traceback__, twin.__cause__ = error.__traceback__, error.__cause__
    return twin
