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
import contextvars
import copy
from collections.abc import Awaitable, Callable
from typing import Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from .._runtime.leases import Lease, Leases

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Outcome(NamedTuple, Generic[T]):
    """What a call gets from a flight."""

    value: T
    paid: bool
    """Whether this is the one call that the request counts for: true for one of those who share it."""


Share: TypeAlias = Callable[[], Outcome[T]]
"""Gives or raises one waiter's share of a flight that has ended; called once by each who takes it."""


class Source(Protocol[T_co]):
    """Where a call's answer comes from."""

    def ask(self) -> Awaitable[T_co]:
        """Send the request and store the answer."""

    def stored(self) -> Awaitable[T_co | None]:
        """Look into the cache; None if nothing is there."""


class Waiter(Source[T], Protocol[T]):
    """A call that is told of the end, which takes one task less than waiting and fewer turns of the loop."""

    def ended(self, share: Share[T]) -> None:
        """Take what gives or raises the outcome; called once, and must not raise."""


class Flight(Generic[T]):
    """A request under way, and those who wait for it."""

    __slots__ = ("_counted", "_found", "_shared", "key", "task", "waiting")

    def __init__(self, key: str) -> None:
        self.key = key
        self.task: asyncio.Task[None]
        self.waiting: dict[Waiter[T], None] = {}
        """Whom to tell of the end, in the order in which they came: the first counts the request."""
        self._shared = self._counted = False
        self._found: Outcome[T] | BaseException | None = None

    def join(self, waiter: Waiter[T]) -> None:
        """Let a call wait for the end."""
        self._shared = self._shared or bool(self.waiting)
        self.waiting[waiter] = None

    def end(self, found: Outcome[T] | BaseException) -> None:
        """Tell all who wait."""
        self._found = found
        waiting, self.waiting = self.waiting, {}
        for waiter in waiting:
            waiter.ended(self.outcome)

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

    >>> class Example:
    ...     async def ask(self):
    ...         print("sent")
    ...         await asyncio.sleep(0.01)
    ...         return "answer"
    ...     async def stored(self):
    ...         return None
    >>> async def example():
    ...     flights = Flights(Leases(None))
    ...     calls = (flights.run("key", Example()) for _ in range(3))
    ...     return [(value, paid) for value, paid in await asyncio.gather(*calls)]
    >>> asyncio.run(example())
    sent
    [('answer', True), ('answer', False), ('answer', False)]
    """

    def __init__(self, leases: Leases) -> None:
        self._leases = leases
        self._flights: dict[str, Flight[T]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self, key: str, source: Source[T]) -> Outcome[T]:
        """What is asked for, or what is found stored when another process has asked.

        Args:
            key: Calls with equal keys share. The caller has just looked and found nothing stored.
            source: Asked by the call that comes first, in its context.

        Raises:
            Exception: a copy of what `source` raised.
        """
        waiter = _Awaiting(source)
        flight = self.join(key, waiter, contextvars.copy_context())
        try:
            share = await waiter.told
        finally:
            self.leave(flight, waiter)
        return share()

    def join(self, key: str, waiter: Waiter[T], context: contextvars.Context) -> Flight[T]:
        """`run` for who is called back.

        Args:
            key: As for `run`.
            waiter: Whom to tell; and to ask, if nobody has asked yet.
            context: What it is asked in.

        Returns:
            What `leave` takes.
        """
        flight = self._flights.get(key)
        if flight is None:
            flight = self._flights[key] = Flight(key)
            flight.task = asyncio.get_running_loop().create_task(self._fly(flight, waiter), context=context)
            self._tasks.add(flight.task)
        flight.join(waiter)
        return flight

    def leave(self, flight: Flight[T], waiter: Waiter[T]) -> None:
        """Give up waiting: `ended` is not called any more. The last to do so cancels the request."""
        if waiter in flight.waiting:
            del flight.waiting[waiter]
            if not flight.waiting:
                # A call that comes now must not join what is ending.
                self._forget(flight)
                # Before its first step it takes none, not even that by which its task is dropped.
                flight.task.add_done_callback(self._tasks.discard)
                flight.task.cancel()

    async def _fly(self, flight: Flight[T], source: Source[T]) -> None:
        lease: Lease | None = None
        found: Outcome[T] | BaseException
        try:
            lease = self._leases.take(flight.key)
            look = lease is None or lease.released_before
            if lease is None:
                lease = await self._leases.wait(flight.key)
            stored = await source.stored() if look else None
            if stored is None:
                if lease is None:
                    # For those who come later. Whoever does not get it goes on without.
                    lease = self._leases.take(flight.key)
                found = Outcome(await source.ask(), paid=True)
            else:
                found = Outcome(stored, paid=False)
        except BaseException as error:  # told to who waits, whatever it is
            found = error
        if lease is not None:
            lease.release(finished=isinstance(found, Outcome | Exception))
        # Here and not in a callback of the task's, which would take the loop another turn.
        self._forget(flight)
        self._tasks.discard(flight.task)
        try:
            flight.end(found)
        finally:
            # Its traceback holds this frame.
            del found

    def _forget(self, flight: Flight[T]) -> None:
        if self._flights.get(flight.key) is flight:
            del self._flights[flight.key]

    def close(self) -> None:
        """Close the leases' files; what is under way goes on."""
        self._leases.close()


class _Awaiting(Generic[T]):
    """A waiter whose end is awaited."""

    __slots__ = ("_source", "told")

    def __init__(self, source: Source[T]) -> None:
        self._source = source
        self.told: asyncio.Future[Share[T]] = asyncio.get_running_loop().create_future()

    def ask(self) -> Awaitable[T]:
        return self._source.ask()

    def stored(self) -> Awaitable[T | None]:
        return self._source.stored()

    def ended(self, share: Share[T]) -> None:
        if not self.told.done():
            self.told.set_result(share)


def _copy(error: BaseException) -> BaseException:
    try:
        twin = copy.copy(error)
    except Exception:  # one that cannot be copied is shared
        return error
    # Raised, it grows a traceback of its own in front of this one.
    twin.__traceback__, twin.__cause__ = error.__traceback__, error.__cause__
    return twin
