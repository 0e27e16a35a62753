"""Single flight: one request for equal calls of one or several processes, also if calls or processes end."""

import asyncio
import contextvars
import gc
from collections.abc import Awaitable, Callable
from typing import Any

from llm_provider._calls.lifecycle.single_flight import Flights, Shared
from llm_provider._calls.sent_requests import SentRequests
from llm_provider._runtime.leases import Leases


async def shared(flights: Flights[str], ask: Callable[[], Awaitable[str]]) -> Shared[str]:
    """A call as `Engine` makes it, without a budget and alone on its machine."""
    flight = flights.under_way(["key"])
    if flight is not None:
        return await flight.follow(SentRequests())
    with flights.lead(["key"], SentRequests()) as flight:
        flight.result = await ask()
    return Shared(flight.result, paid=True)


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_an_error_that_cannot_be_copied_still_reaches_everyone() -> None:
    class PeculiarError(Exception):
        def __init__(self, *, needed: int) -> None:
            super().__init__("peculiar")

    failing, flights = asyncio.Event(), Flights[str](Leases(None))

    async def work() -> str:
        await failing.wait()
        raise PeculiarError(needed=1)

    calls = [asyncio.create_task(shared(flights, work)) for _ in range(2)]
    await settle()
    failing.set()
    for error in await asyncio.gather(*calls, return_exceptions=True):
        assert isinstance(error, PeculiarError)


async def test_a_failure_that_nobody_waits_for_is_not_reported_as_lost() -> None:
    reported: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))

    async def work() -> str:
        try:
            await asyncio.sleep(60)
        finally:
            raise RuntimeError("while closing")

    flights = Flights[str](Leases(None))
    call = asyncio.create_task(shared(flights, work))
    await settle()
    flights.cancel(call)
    await settle()
    assert call.done()
    # What it holds would keep the failed task alive.
    del call
    gc.collect()
    assert reported == []


async def test_the_request_runs_in_the_context_of_the_call_that_started_it() -> None:
    who: contextvars.ContextVar[str] = contextvars.ContextVar("who")

    flights = Flights[str](Leases(None))

    async def work() -> str:
        await asyncio.sleep(0)
        return who.get()

    async def call(name: str) -> str:
        who.set(name)
        return (await shared(flights, work)).value

    assert await asyncio.gather(*(asyncio.create_task(call(name)) for name in "abc")) == ["a"] * 3
