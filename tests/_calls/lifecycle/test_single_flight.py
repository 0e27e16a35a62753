"""Single flight: one request for equal calls of one or several processes, also if calls or processes end."""

import asyncio
import contextvars
import gc
import signal
import subprocess
import sys
import textwrap
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from llm_provider._calls.lifecycle.single_flight import Flights, Shared
from llm_provider._calls.sent_requests import SentRequests
from llm_provider._runtime.leases import Leases
from support import wait_until


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


PROGRAM = """
    import asyncio, os, sys, time
    from pathlib import Path
    from llm_provider._calls.sent_requests import SentRequests
    from llm_provider._calls.lifecycle.single_flight import Flights
    from llm_provider._runtime.leases import Leases

    folder, calls, seconds = Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])

    async def work():
        with open(folder / "requests", "a") as log:
            print(os.getpid(), file=log)
        await asyncio.sleep(seconds)
        partial = folder / f"answer.{os.getpid()}"
        partial.write_text("answer")
        partial.rename(folder / "answer")
        return "answer"

    async def lookup():
        stored = folder / "answer"
        return stored.read_text() if stored.exists() else None

    async def call(flights):
        flight = flights.under_way(["key"])
        if flight is not None:
            return await flight.follow(SentRequests())
        with flights.lead(["key"], SentRequests()) as flight:
            if flight.elsewhere:
                await flight.wait_for_other_processes()
                flight.result = await lookup()
                if flight.result is not None:
                    return flight.result, False
                flight.take_leases()
            flight.result = await work()
        return flight.result, True

    async def main():
        flights = Flights(Leases(folder / "leases", beat=0.02, patience=2))
        outcomes = await asyncio.gather(*(call(flights) for _ in range(calls)))
        print(*(f"{value}:{paid}" for value, paid in outcomes), flush=True)

    asyncio.run(main())
"""


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[float, int], subprocess.Popen[str]]]:
    """Starts a process that makes so many equal calls, whose request takes so many seconds."""
    running: list[subprocess.Popen[str]] = []

    def start(seconds: float, calls: int) -> subprocess.Popen[str]:
        arguments = ["-W", "error", "-c", textwrap.dedent(PROGRAM), str(tmp_path), str(calls), str(seconds)]
        process = subprocess.Popen([sys.executable, *arguments], stdout=subprocess.PIPE, text=True)
        running.append(process)
        return process

    yield start
    for process in running:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
def test_when_the_leader_is_killed_or_stopped_one_process_takes_over(
    start: Callable[[float, int], subprocess.Popen[str]], tmp_path: Path, how: int
) -> None:
    def requests() -> list[str]:
        log = tmp_path / "requests"
        return log.read_text().split() if log.exists() else []

    leader = start(60, 1)
    assert wait_until(lambda: requests() == [str(leader.pid)])
    others = [start(0.3, 5) for _ in range(3)]
    leader.send_signal(how)
    outcomes = [outcome for process in others for outcome in process.communicate(timeout=60)[0].split()]
    assert sorted(outcomes) == ["answer:False"] * 14 + ["answer:True"]
    assert len(requests()) == 2
