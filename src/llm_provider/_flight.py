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
from collections.abc import Awaitable, Callable
from typing import Generic, NamedTuple, TypeVar

from ._leases import Leases

T = TypeVar("T")


class Outcome(NamedTuple, Generic[T]):
    """What a call gets from a flight."""

    value: T
    paid: bool
    """Whether this is the one call that the request counts for: true for one of those who share it."""


class _Flight(Generic[T]):
    """A task and those who wait for it."""

    __slots__ = ("counted", "shared", "task", "waiting")

    def __init__(self, task: asyncio.Task[Outcome[T]]) -> None:
        self.task = task
        self.waiting: dict[asyncio.Future[None], None] = {}
        """In the order in which they came, and are woken: the first of them counts the request."""
        self.shared = False
        self.counted = False

    async def join(self) -> None:
        """Wait for the task's end; cancelled, leave it running for the others."""
        waiter = asyncio.get_running_loop().create_future()
        self.shared = self.shared or bool(self.waiting)
        self.waiting[waiter] = None
        try:
            await waiter
        finally:
            del self.waiting[waiter]

    def end(self) -> None:
        for waiter in self.waiting:
            if not waiter.done():
                waiter.set_result(None)

    def outcome(self) -> Outcome[T]:
        """One waiter's share of what the task has returned or raised."""
        if self.task.cancelled():
            raise asyncio.CancelledError
        error = self.task.exception()
        if error is not None:
            raise _copy(error) if self.shared else error
        value, paid = self.task.result()
        paid, self.counted = paid and not self.counted, True
        return Outcome(value, paid)


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
        self._tasks: set[asyncio.Task[Outcome[T]]] = set()

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
        flight = self._flights.get(key)
        if flight is None:
            flight = self._start(key, work, lookup)
        try:
            await flight.join()
        finally:
            if not flight.waiting and not flight.task.done():
                # A call that comes now must not join what is ending.
                self._forget(key, flight)
                flight.task.cancel()
        return flight.outcome()

    def _start(
        self, key: str, work: Callable[[], Awaitable[T]], lookup: Callable[[], Awaitable[T | None]]
    ) -> _Flight[T]:
        task = asyncio.get_running_loop().create_task(self._fly(key, work, lookup))
        flight = self._flights[key] = _Flight(task)
        self._tasks.add(task)

        def ended(task: asyncio.Task[Outcome[T]]) -> None:
            self._tasks.discard(task)
            self._forget(key, flight)
            if not task.cancelled():
                # Looked at even if nobody waits any more, or asyncio reports it as lost.
                task.exception()
            flight.end()

        task.add_done_callback(ended)
        return flight

    def _forget(self, key: str, flight: _Flight[T]) -> None:
        if self._flights.get(key) is flight:
            del self._flights[key]

    async def _fly(
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
