"""Two machines with a store between them: one finds what the other one has paid for, in every way to call."""

import asyncio
import itertools
import os
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from llm_provider import CacheMissError, CacheWarning, Client, RequestError, SecondLevel
from llm_provider._core.runtime import clock
from llm_provider._core.store.response_cache import Entry
from llm_provider._features.second_level.two_level_cache import TwoLevelCache
from llm_provider.simulator import Simulator
from second_level_support import SqliteStore
from support import TooSlowError, ask, patiently, wait_until

MODEL = "gpt-6.1-sol"
PROMPTS = [f"row {number}" for number in range(140)]
EMBEDDER = "text-embedding-3-small"

Machine = Callable[..., Client]


@pytest.fixture
def store(tmp_path: Path) -> SqliteStore:
    return SqliteStore(tmp_path / "shared.sqlite")


@pytest.fixture
def machine(simulator: Simulator, tmp_path: Path) -> Iterator[Machine]:
    """Makes clients of machines that share nothing but their second level."""
    clients: list[Client] = []

    def make(cache: Any) -> Client:
        clients.append(Client(cache_dir=tmp_path / f"machine {len(clients)}", cache=cache))
        return clients[-1]

    yield make
    for client in clients:
        client.close()


def several(client: Client) -> list[Any]:
    return [client.call(MODEL, PROMPTS[0]), client.call(MODEL, PROMPTS[1])]


def as_a_list(client: Client) -> list[Any]:
    return list(client.call_many(MODEL, PROMPTS))


def from_a_generator(client: Client) -> list[Any]:
    return [result for _, result in client.iter_many(MODEL, (prompt for prompt in PROMPTS))]


def from_an_event_loop(client: Client) -> list[Any]:
    return list(asyncio.run(client.acall_many(MODEL, PROMPTS)))


def as_tasks(client: Client) -> list[Any]:
    async def run() -> list[Any]:
        return await asyncio.gather(*(client.acall(MODEL, prompt) for prompt in PROMPTS))

    return asyncio.run(run())


def as_a_stream(client: Client) -> list[Any]:
    with client.stream(MODEL, PROMPTS[0]) as stream:
        assert "".join(delta.text for delta in stream) == stream.response.text
        return [stream.response]


def as_samples(client: Client) -> list[Any]:
    return [client.call(MODEL, PROMPTS[0], n=4)]


def as_vectors(client: Client) -> list[Any]:
    return [client.embed(EMBEDDER, PROMPTS)]


WAYS = [
    several, as_a_list, from_a_generator, from_an_event_loop, as_tasks, as_a_stream, as_samples, as_vectors
]  # fmt: skip


def test_another_machine_finds_every_answer_in_every_way_to_call(
    simulator: Simulator, store: SqliteStore, machine: Machine
) -> None:
    first = machine(SecondLevel(store, wait_for_writes=True))
    for way in (as_a_list, as_samples, as_vectors):
        way(first)
    sent = simulator.ledger().requests

    def attempt(way: Any, mode: Any, longer: float) -> None:
        store.pause = 0.002 * longer
        store.gets.clear()
        second = machine(SecondLevel(store, mode=mode))
        results = way(second)
        assert all(result.cached for result in results), (way, mode)
        keys = {several: 2, as_a_stream: 1, as_samples: 4}.get(way, len(PROMPTS))
        assert sum(store.gets) == keys, (way, mode)
        statistics = second.cache.stats()
        assert statistics.second_level is not None
        assert (statistics.second_level.hits, statistics.hits, statistics.misses) == (keys, keys, 0)
        # Far fewer round trips than keys; single calls of one thread have one each.
        if len(store.gets) > max(2, keys // 6):
            raise TooSlowError((way, mode, store.gets))  # the keys came one by one

    for way, mode in itertools.product(WAYS, ("use", "only")):
        patiently(partial(attempt, way, mode))
    assert simulator.ledger().requests == sent


def test_answers_are_copied_to_the_local_store(store: SqliteStore, machine: Machine, tmp_path: Path) -> None:
    as_a_list(machine(SecondLevel(store, wait_for_writes=True)))
    second = machine(store)
    as_a_list(second)
    second.close()
    store.gets.clear()
    with Client(cache_dir=tmp_path / "machine 1", cache=store) as again:
        assert all(result.cached for result in as_a_list(again))
    assert store.gets == []
    # The copies are those that the first machine has, with their questions.
    with Client(cache_dir=tmp_path / "machine 1") as alone:
        assert alone.cache.verify()
        assert alone.cache.export(tmp_path / "copies.jsonl") == len(PROMPTS)
        assert "row 7" in (tmp_path / "copies.jsonl").read_text()


def test_an_answer_is_in_both_stores_before_it_counts(store: SqliteStore, machine: Machine) -> None:
    client = machine(SecondLevel(store, wait_for_writes=True))
    client.call(MODEL, "Hi")
    assert len(store.export()) == 1  # type: ignore[arg-type]  # any iterable, here a list
    later = machine(store)
    later.call(MODEL, "Ho")
    later.close()  # the end of a client waits for what is under way
    assert len(store.export()) == 2  # type: ignore[arg-type]  # any iterable, here a list


def test_only_modes_that_read_and_write_use_the_second_level(store: SqliteStore, machine: Machine) -> None:
    client = machine(store)
    client.call(MODEL, "Hi", cache="off")
    client.close()
    assert (store.gets, store.puts) == ([], [])
    refreshing = machine(store)
    refreshing.call(MODEL, "Hi", cache="refresh")
    refreshing.close()
    assert (store.gets, store.puts) == ([], [1])


def test_a_miss_in_both_is_final_for_only(simulator: Simulator, store: SqliteStore, machine: Machine) -> None:
    client = machine(SecondLevel(store, mode="only"))
    for way in WAYS:
        try:
            results = way(client)
        except CacheMissError:
            continue
        assert all(isinstance(result, CacheMissError) for result in results), way
    assert simulator.ledger().requests == 0


def test_a_damaged_value_is_a_miss(store: SqliteStore, machine: Machine) -> None:
    machine(SecondLevel(store, wait_for_writes=True)).call(MODEL, "Hi")
    [(key, value)] = store.export()
    store.put_many({key: value[:40] + bytes([value[40] ^ 1]) + value[41:]})
    second = machine(SecondLevel(store, wait_for_writes=True))
    assert not second.call(MODEL, "Hi").cached
    # What was paid for again replaces it.
    assert machine(store).call(MODEL, "Hi").cached


def test_an_event_loop_never_waits_for_the_store(store: SqliteStore, machine: Machine) -> None:
    client = machine(store)
    loop_threads: list[str] = []
    reading = store.get_many

    def watched(keys: Any) -> Any:
        loop_threads.append(threading.current_thread().name)
        return reading(keys)

    store.get_many = watched  # type: ignore[method-assign]  # the store is one of the test
    from_an_event_loop(client)
    as_tasks(client)
    assert set(loop_threads) == {"llm_provider-second-level-reader"}


def test_a_store_that_fails_costs_no_call_and_no_answer(store: SqliteStore, machine: Machine) -> None:
    client = machine(store)
    store.fails = OSError("the server is gone")
    with pytest.warns(CacheWarning, match="the server is gone") as warned:
        assert len(as_a_list(client)) == len(PROMPTS)
    assert len(warned) == 1
    statistics = client.cache.stats()
    assert statistics.entries == len(PROMPTS)
    assert statistics.second_level is not None
    assert wait_until(lambda: client.cache.stats().second_level.pending == len(PROMPTS))  # type: ignore[union-attr]  # known to be set here
    store.fails = None
    assert wait_until(lambda: len(list(store.export())) == len(PROMPTS))


def test_push_and_pull_complete_both_levels(store: SqliteStore, machine: Machine, tmp_path: Path) -> None:
    with Client(cache_dir=tmp_path / "machine 0") as alone:
        several(alone)
    first = machine(store)
    assert first.cache.push().added == 2
    pushed = first.cache.push()
    assert (pushed.added, pushed.kept) == (0, 2)
    second = machine(store)
    assert second.cache.pull().added == 2
    assert second.cache.pull().kept == 2
    assert len(second.cache) == 2
    store.fails = OSError("gone")
    with pytest.raises(OSError, match="gone"):
        second.cache.push()
    store.fails = ValueError("nonsense")
    with pytest.raises(OSError, match="second level SqliteStore cannot be used: ValueError: nonsense"):
        second.cache.pull()
    with (
        Client(cache_dir=tmp_path / "alone") as alone,
        pytest.raises(RequestError, match="this one has none"),
    ):
        alone.cache.pull()


def test_a_batch_of_the_provider_has_only_rows_that_no_machine_has(
    simulator: Simulator, store: SqliteStore, machine: Machine
) -> None:
    as_a_list(machine(SecondLevel(store, wait_for_writes=True)))
    sent = simulator.ledger().requests
    results = list(machine(store).iter_many(MODEL, (prompt for prompt in PROMPTS), delivery="batch"))
    assert all(result.cached for _, result in results)
    refused = machine(SecondLevel(store, mode="only")).call_many(MODEL, ["new"], delivery="batch")
    assert isinstance(refused[0], CacheMissError)
    assert simulator.ledger().requests == sent


@pytest.mark.parametrize("use", ["close", "push", "pull"])
def test_what_was_stored_before_is_sent_first(tmp_path: Path, store: SqliteStore, use: str) -> None:
    """Two answers come one after the other; the store takes the first while the second one arrives."""
    cache = TwoLevelCache(SecondLevel(store), tmp_path / "local")
    put, gate, keys = store.put_many, threading.Event(), list[str]()

    def put_late(values: Any) -> None:
        keys.extend(values)
        assert gate.wait(60)
        put(values)

    store.put_many = put_late  # type: ignore[method-assign]  # the store is one of the test
    entry = Entry(b"{}", 0.1, 1.0)
    assert cache.put("a", entry).result()
    assert wait_until(lambda: keys == ["a"])
    assert cache.put("b", entry).result()
    threading.Timer(0.05, gate.set).start()
    done = getattr(cache, use)()
    assert dict(store.export()).keys() == {"a", "b"}
    assert keys == ["a", "b"]
    if done is not None:
        assert (done.added, done.kept) == (0, 2)
    cache.close()
    assert store.closed == 1


def test_an_answer_that_is_fetched_is_on_this_machine(tmp_path: Path, store: SqliteStore) -> None:
    with_it = TwoLevelCache(SecondLevel(store, wait_for_writes=True), tmp_path / "other")
    keys = [f"key {number}" for number in range(130)]
    for key in keys:
        with_it.put(key, Entry(b"{}", 0.1, 1.0))
    with_it.close()
    cache = TwoLevelCache(SecondLevel(store), tmp_path / "local")
    cache.fetch(keys)
    assert all(cache.peek(key) is not None for key in keys)
    store.gets.clear()
    cache.fetch(keys)
    assert store.gets == []
    cache.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
def test_a_forked_child_has_threads_of_its_own(tmp_path: Path, store: SqliteStore) -> None:
    cache = TwoLevelCache(SecondLevel(store, wait_for_writes=True), tmp_path / "local")
    assert cache.put("k", Entry(b"{}", 0.1, 1.0)).result()
    child = os.fork()
    if child == 0:
        try:
            cache.after_fork()
            cache.put("l", Entry(b"{}", 0.1, 1.0)).result(20)
            os._exit(0 if len(list(store.export())) == 2 else 1)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    cache.close()


@pytest.mark.parametrize("way", ["call", "acall_many", "stream"])
@pytest.mark.parametrize("mode", ["use", "only"])
def test_an_answer_that_another_machine_has_asked_anew_is_found(
    machine: Machine,
    simulator: Simulator,
    store: SqliteStore,
    monkeypatch: pytest.MonkeyPatch,
    way: str,
    mode: Any,
) -> None:
    first, second = (machine(SecondLevel(store, wait_for_writes=True)) for _ in range(2))
    with monkeypatch.context() as past:
        past.setattr(clock, "time", lambda: time.time() - 7200)
        assert not first.call(MODEL, "news").cached
    assert second.call(MODEL, "news").cached
    # The age is that of the answer, and not of its copy.
    assert not second.call(MODEL, "news", max_age=3600).cached
    assert ask(first, way, MODEL, "news", max_age=3600, cache=mode).cached
    assert ask(first, way, MODEL, "news", max_age=7300).cached
    assert simulator.ledger().requests == 2
