"""Single flight: one request for equal calls of one or several processes, also if calls or processes end."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import signal
import subprocess
import sys
import textwrap
import traceback
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llm_provider import RateLimitError
from llm_provider._calls.lifecycle.single_flight import Flights, Shared
from llm_provider._calls.sent_requests import SentRequests
from llm_provider._runtime.leases import Leases
from support import wait_until


async def shared(
    flights: Flights[str],
    key: str,
    ask: Callable[[], Awaitable[str]],
    stored: Callable[[], Awaitable[str | None]],
) -> Shared[str]:
    """A call as `Engine` makes it, without a budget."""
    flight = flights.under_way([key])
    if flight is not None:
        return await flight.follow(SentRequests())
    with flights.lead([key], SentRequests()) as flight:
        if flight.elsewhere:
            await flight.wait_for_other_processes()
            answer = await stored()
            if answer is not None:
                flight.result = answer
                return Shared(answer, paid=False)
            flight.take_leases()
        flight.result = await ask()
    return Shared(flight.result, paid=True)


async def nothing() -> None:
    return None


class Service:
    """What is asked, and what was stored: answers when told to, and counts."""

    def __init__(self) -> None:
        self.stored: dict[str, str] = {}
        self.begun: list[str] = []
        self.cancelled: list[str] = []
        self.pending: dict[str, asyncio.Future[str]] = {}
        self.looked = 0

    def work(self, key: str) -> Callable[[], Awaitable[str]]:
        async def work() -> str:
            assert key not in self.pending, "two requests for one key at the same time"
            self.begun.append(key)
            self.pending[key] = asyncio.get_running_loop().create_future()
            try:
                answer = await self.pending[key]
            except asyncio.CancelledError:
                self.cancelled.append(key)
                # A connection that takes a while to close.
                await asyncio.sleep(0)
                raise
            finally:
                del self.pending[key]
            if answer != "not kept":
                self.stored[key] = answer
            return answer

        return work

    def lookup(self, key: str) -> Callable[[], Awaitable[str | None]]:
        async def lookup() -> str | None:
            self.looked += 1
            await asyncio.sleep(0)
            return self.stored.get(key)

        return lookup

    def call(self, flights: Flights[str], key: str = "key") -> asyncio.Task[Shared[str]]:
        return asyncio.create_task(shared(flights, key, self.work(key), self.lookup(key)))


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_equal_calls_share_one_request_and_one_of_them_counts_it() -> None:
    service, flights = Service(), Flights[str](Leases(None))
    calls = [service.call(flights) for _ in range(20)]
    await settle()
    service.pending["key"].set_result("answer")
    outcomes = await asyncio.gather(*calls)
    assert [outcome.value for outcome in outcomes] == ["answer"] * 20
    assert [outcome.paid for outcome in outcomes].count(True) == 1
    assert service.begun == ["key"]
    # Nothing was released before, so nothing was looked up.
    assert service.looked == 0


async def test_different_calls_share_nothing() -> None:
    service, flights = Service(), Flights[str](Leases(None))
    calls = {key: service.call(flights, key) for key in ("a", "b")}
    await settle()
    assert service.begun == ["a", "b"]
    for key, call in calls.items():
        service.pending[key].set_result(key)
        assert await call == Shared(key, paid=True)


@pytest.mark.parametrize("leaving", [0, 1], ids=["the leader", "a follower"])
async def test_a_cancelled_call_does_not_fail_the_others(leaving: int) -> None:
    service, flights = Service(), Flights[str](Leases(None))
    calls = [service.call(flights) for _ in range(3)]
    await settle()
    left = calls.pop(leaving)
    flights.cancel(left)
    await settle()
    # Another call may still follow.
    calls.append(service.call(flights))
    await settle()
    service.pending["key"].set_result("answer")
    outcomes = await asyncio.gather(*calls)
    assert [value for value, _ in outcomes] == ["answer"] * 3
    assert sum(paid for _, paid in outcomes) == 1
    assert service.cancelled == []
    await settle()
    assert left.cancelled()


async def test_a_task_goes_on_after_a_request_that_it_has_led() -> None:
    """As a worker of a batch does: followers that give up late have nothing to do with its next request."""

    service, flights = Service(), Flights[str](Leases(None))

    async def worker() -> list[Shared[str]]:
        return [await shared(flights, key, service.work(key), nothing) for key in ("key", "next")]

    working = asyncio.create_task(worker())
    await settle()
    following = service.call(flights)
    await settle()
    service.pending["key"].set_result("answer")
    await asyncio.sleep(0)
    flights.cancel(following)
    await settle()
    service.pending["next"].set_result("another")
    assert await working == [Shared("answer", paid=True), Shared("another", paid=True)]


async def test_the_last_to_give_up_cancels_the_request_and_a_new_call_does_not_join_it(
    tmp_path: Path,
) -> None:
    service, flights = Service(), Flights[str](Leases(tmp_path))
    calls = [service.call(flights) for _ in range(2)]
    await settle()
    for call in calls:
        flights.cancel(call)
    await asyncio.sleep(0)
    fresh = service.call(flights)
    while len(service.begun) < 2:
        await asyncio.sleep(0.01)
    assert service.cancelled == ["key"]
    service.pending["key"].set_result("answer")
    assert await fresh == Shared("answer", paid=True)
    assert all(call.cancelled() for call in calls)


async def test_a_failure_reaches_everyone_as_an_error_of_their_own() -> None:
    service, flights = Service(), Flights[str](Leases(None))
    calls = [service.call(flights) for _ in range(3)]
    await settle()
    failure = RateLimitError("slow down", provider="openai", status=429, retry_after=2.0)
    service.pending["key"].set_exception(failure)
    errors = await asyncio.gather(*calls, return_exceptions=True)
    assert len({id(error) for error in errors}) == 3
    for error in errors:
        assert isinstance(error, RateLimitError)
        assert vars(error) == vars(failure)
        names = [frame.name for frame in traceback.extract_tb(error.__traceback__)]
        # Where it came from is shown; where another follower was is not.
        assert "work" in names
        assert names.count("follow") <= 1
    # It is over: the next call is a new request.
    again = service.call(flights)
    await settle()
    service.pending["key"].set_result("answer")
    assert (await again).paid


async def test_an_error_that_cannot_be_copied_still_reaches_everyone() -> None:
    class PeculiarError(Exception):
        def __init__(self, *, needed: int) -> None:
            super().__init__("peculiar")

    service, flights = Service(), Flights[str](Leases(None))
    calls = [service.call(flights) for _ in range(2)]
    await settle()
    service.pending["key"].set_exception(PeculiarError(needed=1))
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
    call = asyncio.create_task(shared(flights, "key", work, nothing))
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
        return (await shared(flights, "key", work, nothing)).value

    assert await asyncio.gather(*(asyncio.create_task(call(name)) for name in "abc")) == ["a"] * 3


async def test_another_client_of_the_same_cache_finds_the_stored_answer(tmp_path: Path) -> None:
    service = Service()
    clients = [Flights[str](Leases(tmp_path)) for _ in range(2)]
    first, second = service.call(clients[0]), service.call(clients[1])
    await settle()
    service.pending["key"].set_result("answer")
    assert await first == Shared("answer", paid=True)
    assert await second == Shared("answer", paid=False)
    # Asked for a moment too early to have seen it stored: the mark says to look again.
    assert await service.call(clients[1]) == Shared("answer", paid=False)
    assert service.begun == ["key"]


async def test_another_client_does_not_take_over_a_failure_and_waits_for_one_only(tmp_path: Path) -> None:
    services = [Service() for _ in range(3)]
    calls = [service.call(Flights[str](Leases(tmp_path))) for service in services]
    await settle()
    assert [len(service.begun) for service in services] == [1, 0, 0]
    services[0].pending["key"].set_exception(RateLimitError("slow down"))
    with pytest.raises(RateLimitError):
        await calls[0]
    # Both at once, though one of them at most can hold the lease.
    while not all(service.pending for service in services[1:]):
        await asyncio.sleep(0.01)
    for service, call in zip(services[1:], calls[1:], strict=True):
        service.pending["key"].set_result("answer")
        assert (await call).paid


async def test_a_cancelled_request_is_taken_over_by_one_client_at_a_time(tmp_path: Path) -> None:
    services = [Service() for _ in range(4)]
    for service in services:
        service.stored = services[0].stored
    clients = [Flights[str](Leases(tmp_path)) for _ in services]
    calls = [service.call(client) for service, client in zip(services, clients, strict=True)]
    for left in (4, 3, 2):
        while not any(service.pending for service in services):
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.05)
        leading = [index for index, service in enumerate(services) if service.pending]
        assert len(leading) == 1
        assert len([call for call in calls if not call.done()]) == left
        clients[leading[0]].cancel(calls[leading[0]])
        await settle()
    while not any(service.pending for service in services):
        await asyncio.sleep(0.01)
    next(service for service in services if service.pending).pending["key"].set_result("answer")
    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    assert outcomes.count(Shared("answer", paid=True)) == 1
    assert all(len(service.begun) == 1 for service in services)


STEPS = st.one_of(
    st.tuples(st.just("call"), st.integers(0, 1), st.sampled_from("ab")),
    st.tuples(st.just("cancel"), st.integers(0, 20), st.none()),
    st.tuples(st.sampled_from(["answer", "not kept", "fail"]), st.none(), st.sampled_from("ab")),
    st.tuples(st.just("turns"), st.integers(1, 4), st.none()),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(STEPS, max_size=40))
def test_no_cancellation_loses_a_result(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, Any, Any]]
) -> None:
    """Two clients stand for two processes; calls start, end, fail and are cancelled in any order."""
    directory = tmp_path_factory.mktemp("leases")

    async def main() -> None:
        services = [Service(), Service()]
        services[1].stored = services[0].stored
        leases = [Leases(directory) for _ in services]
        clients = [Flights[str](each) for each in leases]
        calls: list[asyncio.Task[Shared[str]]] = []
        owner: dict[asyncio.Task[Shared[str]], Flights[str]] = {}
        cancelled: set[asyncio.Task[Shared[str]]] = set()

        def resolve(key: str, how: str) -> None:
            for service in services:
                pending = service.pending.get(key)
                if pending is not None and not pending.done():
                    if how == "fail":
                        pending.set_exception(RateLimitError("slow down"))
                    else:
                        pending.set_result(how)

        for step, number, key in steps:
            if step == "call":
                calls.append(services[number].call(clients[number], key))
                owner[calls[-1]] = clients[number]
            elif step == "cancel" and calls:
                victim = calls[number % len(calls)]
                if not victim.done():
                    owner[victim].cancel(victim)
                    cancelled.add(victim)
            elif step == "turns":
                for _ in range(number):
                    await asyncio.sleep(0)
            elif key is not None:
                resolve(key, step)

        while not all(call.done() for call in calls):
            resolve("a", "answer")
            resolve("b", "answer")
            await asyncio.sleep(0.001)

        paid = 0
        for call in calls:
            if call.cancelled():
                # Nobody's cancellation is anybody else's.
                assert call in cancelled
            elif call.exception() is None:
                assert call.result().value in ("answer", "not kept")
                paid += call.result().paid
            else:
                assert isinstance(call.exception(), RateLimitError)
        begun = services[0].begun + services[1].begun
        assert paid <= len(begun) - sum(len(service.cancelled) for service in services)
        if not {"cancel", "fail", "not kept"} & {step for step, _, _ in steps}:
            assert len(begun) == len(set(begun)) == paid
        await settle()
        assert asyncio.all_tasks() == {asyncio.current_task()}
        for key in "ab":
            lease = leases[0].take(key)
            assert lease is not None, "a lease was left behind"
            lease.release()

    asyncio.run(main())


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
        print("ready", flush=True)
        sys.stdin.readline()
        outcomes = await asyncio.gather(*(call(flights) for _ in range(calls)))
        print(*(f"{value}:{paid}" for value, paid in outcomes), flush=True)

    asyncio.run(main())
"""


class Processes:
    """Processes that make equal calls, started together."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._running: list[subprocess.Popen[str]] = []

    def start(self, calls: int = 1, seconds: float = 0.3) -> subprocess.Popen[str]:
        """Start one that waits for `go`."""
        process = subprocess.Popen(
            [
                *(sys.executable, "-W", "error", "-c", textwrap.dedent(PROGRAM)),
                *(str(self._folder), str(calls), str(seconds)),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._running.append(process)
        assert process.stdout.readline() == "ready\n"
        return process

    @staticmethod
    def go(process: subprocess.Popen[str]) -> None:
        process.stdin.write("\n")
        process.stdin.flush()

    @staticmethod
    def outcomes(process: subprocess.Popen[str]) -> list[str]:
        output, _ = process.communicate(timeout=60)
        assert process.returncode == 0
        return output.split()

    def requests(self) -> list[int]:
        log = self._folder / "requests"
        return [int(line) for line in log.read_text().split()] if log.exists() else []

    def end(self) -> None:
        for process in self._running:
            process.kill()
            process.communicate()


@pytest.fixture
def processes(tmp_path: Path) -> Any:
    started = Processes(tmp_path)
    yield started
    started.end()


def test_twenty_equal_calls_of_two_processes_make_one_request(processes: Processes) -> None:
    running = [processes.start(calls=10) for _ in range(2)]
    for process in running:
        processes.go(process)
    outcomes = [outcome for process in running for outcome in processes.outcomes(process)]
    assert sorted(outcomes) == ["answer:False"] * 19 + ["answer:True"]
    assert len(processes.requests()) == 1


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
def test_when_the_leader_is_killed_or_stopped_one_process_takes_over(processes: Processes, how: int) -> None:
    leader = processes.start(seconds=60)
    processes.go(leader)
    assert wait_until(lambda: processes.requests() == [leader.pid], 30)
    others = [processes.start(calls=5) for _ in range(3)]
    for process in others:
        processes.go(process)
    leader.send_signal(how)
    outcomes = [outcome for process in others for outcome in processes.outcomes(process)]
    assert sorted(outcomes) == ["answer:False"] * 14 + ["answer:True"]
    assert len(processes.requests()) == 2
