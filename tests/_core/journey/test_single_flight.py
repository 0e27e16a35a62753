"""Single flight: one request for equal calls of one or several processes, also if calls or processes end."""

import asyncio
import gc
import itertools
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from llm_provider import CacheWarning, Client, SecondLevel
from llm_provider._core.events.events import Waits
from llm_provider._core.journey import single_flight
from llm_provider._core.journey.sent_requests import SentRequests
from llm_provider._core.journey.single_flight import Flights
from llm_provider._core.runtime import clock
from llm_provider._core.runtime.leases import Leases
from llm_provider.simulator import Fault, Simulator
from second_level_support import SqliteStore
from support import WAYS, ask, wait_until


async def shared(flights: Flights[str], ask: Callable[[], Awaitable[str]]) -> tuple[str, bool]:
    """A call as `Engine` makes it, without a budget and alone on its machine."""
    flight = flights.under_way(["key"])
    if flight is not None:
        return await flight.follow(SentRequests())
    with flights.lead(["key"], SentRequests(), 0.0) as flight:
        flight.result = await ask()
    return flight.result, True


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_only_a_request_that_ended_since_the_look_up_is_a_hint_to_look_again(tmp_path: Path) -> None:
    flights: Flights[None] = Flights(Leases(tmp_path), Waits(show=False))
    with flights.lead(["key"], SentRequests(), 0.0) as flight:
        assert not flight.elsewhere
        flight.result = None
    looked_up = clock.monotonic()
    for since, is_hint in ((looked_up - 60.0, True), (looked_up + 1.0, False)):
        with flights.lead(["key"], SentRequests(), since) as flight:
            assert flight.elsewhere == is_hint
            flight.result = None


async def test_an_error_that_cannot_be_copied_still_reaches_everyone() -> None:
    class PeculiarError(Exception):
        def __init__(self, *, needed: int) -> None:
            super().__init__("peculiar")

    failing, flights = asyncio.Event(), Flights[str](Leases(None), Waits(show=False))

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

    flights = Flights[str](Leases(None), Waits(show=False))
    call = asyncio.create_task(shared(flights, work))
    await settle()
    flights.cancel(call)
    await settle()
    assert call.done()
    # What it holds would keep the failed task alive.
    del call
    gc.collect()
    assert reported == []


@pytest.mark.parametrize("left", [0, 1, 2])
async def test_the_first_call_that_waits_pays_for_a_cancelled_one(left: int) -> None:
    """`left` followers are cancelled after the leader; the next one in the line pays."""
    flights, answered = Flights[str](Leases(None), Waits(show=False)), asyncio.Event()
    sent = [SentRequests() for _ in range(4)]

    async def lead() -> None:
        with flights.lead(["key"], sent[0], 0.0) as flight:
            sent[0].start()
            sent[0].leave()
            await answered.wait()
            sent[0].end()
            flight.result = "answer"

    async def follow(number: int) -> tuple[str, bool]:
        flight = flights.under_way(["key"])
        assert flight is not None
        return await flight.follow(sent[number])

    leader = asyncio.create_task(lead())
    await settle()
    followers = [asyncio.create_task(follow(number)) for number in (1, 2, 3)]
    await settle()
    for task in (leader, *followers[:left]):
        flights.cancel(task)
        await settle()
    answered.set()
    results = await asyncio.gather(*followers[left:])
    assert results == [("answer", True), *[("answer", False)] * (2 - left)]
    assert [each.including_parts().attempts for each in sent] == [
        int(number == left + 1) for number in range(4)
    ]


MODEL = "gpt-6.1-sol"
PROMPTS = [f"row {number}" for number in range(20)]


@pytest.fixture
def store(tmp_path: Path) -> SqliteStore:
    return SqliteStore(tmp_path / "shared.sqlite")


@pytest.fixture
def level(store: SqliteStore) -> SecondLevel:
    return SecondLevel(store, leases=True)


@pytest.fixture
def machine(simulator: Simulator, level: SecondLevel, tmp_path: Path) -> Iterator[Client]:
    with Client(cache_dir=tmp_path / "1", cache=level, max_retries=0) as client:
        yield client


def test_equal_calls_of_two_machines_are_one_request(
    machine: Client, simulator: Simulator, store: SqliteStore, level: SecondLevel, tmp_path: Path
) -> None:
    simulator.configure(latency=0.3)

    async def ask(other: Client) -> list[bool]:
        both = await asyncio.gather(machine.acall_many(MODEL, PROMPTS), other.acall_many(MODEL, PROMPTS))
        return [result.cached for results in both for result in results]  # type: ignore[union-attr]  # known to be set here

    with Client(cache_dir=tmp_path / "2", cache=level) as other:
        cached = asyncio.run(ask(other))
        assert simulator.ledger().requests == len(PROMPTS)
        assert sorted(cached) == [False] * 20 + [True] * 20
        assert wait_until(lambda: not store.leases)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("samples", [1, 2])
def test_a_lease_is_held_until_the_answers_are_where_the_other_machine_looks(
    machine: Client, store: SqliteStore, way: str, samples: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[int] = []
    release, put = store.release_lease, store.put_many

    def note_answers(name: str, owner: str) -> None:
        held.append(len(list(store.export())))
        release(name, owner)

    def put_under_lease(values: Mapping[str, bytes]) -> None:
        assert store.leases or "stream" in way
        put(values)

    monkeypatch.setattr(store, "release_lease", note_answers)
    monkeypatch.setattr(store, "put_many", put_under_lease)
    ask(machine, way, MODEL, "Hi", n=samples)
    assert wait_until(lambda: not store.leases and len(list(store.export())) == samples)
    # A stream takes no lease.
    assert held == [] if "stream" in way else held == [samples]


def test_a_machine_that_is_gone_or_has_failed_holds_nobody(
    machine: Client, simulator: Simulator, store: SqliteStore
) -> None:
    simulator.inject(Fault(status=400))
    with pytest.raises(Exception, match=r"400|bad|invalid"):
        machine.call(MODEL, "Hi")
    assert wait_until(lambda: not store.leases)
    machine.call(MODEL, "Hi")
    assert wait_until(lambda: not store.leases)
    # Another machine takes every lease, and ends.
    taking = store.take_lease

    def taken_before(name: str, owner: str, seconds: float) -> bool:
        store.leases.setdefault(name, ("a machine that is gone", time.monotonic() + 0.1))
        return taking(name, owner, seconds)

    store.take_lease = taken_before  # type: ignore[method-assign]  # the store is one of the test
    assert not machine.call(MODEL, "Ho").cached


def test_a_store_that_fails_grants_every_lease(machine: Client, store: SqliteStore) -> None:
    store.take_lease = None  # type: ignore[method-assign, assignment]  # a store without leases
    with pytest.warns(CacheWarning, match="TypeError"):
        assert machine.call(MODEL, "Hi").text


async def test_cancelling_leaves_no_lease(machine: Client, simulator: Simulator, store: SqliteStore) -> None:
    simulator.configure(latency=5)
    task = asyncio.create_task(machine.acall(MODEL, "Hi"))
    while not store.leases:
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert wait_until(lambda: not store.leases)


async def test_a_lease_of_another_machine_is_asked_for_with_growing_pauses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[float] = []

    class Leasing:
        def take_lease(self, name: str) -> Future[bool]:
            asked.append(time.monotonic())
            taken: Future[bool] = Future()
            taken.set_result(len(asked) == 4)
            return taken

        def release_lease(self, name: str) -> None:
            asked.append(0.0)

    async def find(*_: object) -> None:
        """Nothing is stored."""

    async def deliver(*_: object) -> list[Any]:
        return ["delivered"]

    monkeypatch.setattr(single_flight, "_PAUSES", (0.02, 0.04))
    call: Any = SimpleNamespace(key=str)
    cache: Any = Leasing()
    assert await single_flight.deliver_once(cache, call, [0], find, deliver) == ["delivered"]
    assert asked.pop() == 0.0, "it is released"
    pauses = [later - earlier for earlier, later in itertools.pairwise(asked)]
    assert all(pause >= least for pause, least in zip(pauses, (0.02, 0.04, 0.04), strict=True))
