import asyncio
import contextvars
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from llm_provider import Client, track
from llm_provider._core.money.track import NOWHERE, current
from llm_provider.simulator import Simulator

MODEL = "gpt-6.1-sol"


def in_thread(work: Callable[[], object]) -> None:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def test_nested_tracks_have_their_own_sums_and_tags(client: Client) -> None:
    with track("outer") as outer:
        client.call(MODEL, "1")
        with track("inner") as inner, track() as unnamed:
            client.call(MODEL, "2")
            client.call(MODEL, "2")
        client.call(MODEL, "3")
    client.call(MODEL, "4")
    assert [ledger.requests for ledger in (outer, inner, unnamed, client.usage)] == [3, 1, 1, 4]
    assert [ledger.hits for ledger in (outer, inner, unnamed, client.usage)] == [1, 1, 1, 1]
    assert outer.spent == 3 * inner.spent > 0
    assert inner.saved == inner.spent
    requests = {row.tag: row.requests for row in client.usage.rows("tag")}
    assert requests == {"": 1, "outer": 2, "outer/inner": 1}


def test_batches_streams_tasks_and_threads_are_inside(client: Client, simulator: Simulator) -> None:
    async def tasks() -> None:
        async def task(number: int) -> None:
            with track(str(number)) as own:
                await client.acall(MODEL, f"task {number}")
                await asyncio.sleep(0.01)
                await asyncio.to_thread(client.call, MODEL, f"to_thread {number}")
            assert own.requests == 2

        await asyncio.gather(*map(task, range(3)))
        async with client.astream(MODEL, "astreamed") as deltas:
            async for _ in deltas:
                pass
        assert len(await client.acall_many(MODEL, ["a", "b"], progress=False)) == 2

    with track("all") as tracked:
        client.call_many(MODEL, [f"many {number}" for number in range(40)], progress=False)
        assert tracked.requests == 40
        with client.stream(MODEL, "streamed") as deltas:
            list(deltas)
        asyncio.run(tasks())
        assert tracked.requests == 40 + 1 + 6 + 1 + 2
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda number: client.call(MODEL, f"pool {number}"), range(8)))
    assert tracked.requests == client.usage.requests == simulator.ledger().answered == 58


def test_tracks_of_other_threads_are_their_own(client: Client) -> None:
    opened, done, requests = threading.Event(), threading.Event(), []

    def other() -> None:
        with track("other") as tracked:
            opened.set()
            assert done.wait(30)
            client.call(MODEL, "mine")
        requests.append(tracked.requests)

    worker = threading.Thread(target=other)
    worker.start()
    assert opened.wait(30)
    client.call(MODEL, "of the main thread")
    in_thread(lambda: client.call(MODEL, "of a third"))
    done.set()
    worker.join()
    assert requests == [1]


def test_a_thread_without_a_context_counts_in_the_tracks_around_all_open_ones() -> None:
    async def task(name: str, ready: asyncio.Barrier) -> tuple[str, str, str]:
        with track(name):
            await ready.wait()
            alone: list[str] = []
            await asyncio.get_running_loop().run_in_executor(None, lambda: alone.append(current().tag))
            with_context = await asyncio.to_thread(lambda: current().tag)
            await ready.wait()
            return current().tag, alone[0], with_context

    async def main() -> list[tuple[str, str, str]]:
        ready = asyncio.Barrier(2)
        return await asyncio.gather(task("a", ready), task("b", ready))

    assert asyncio.run(main()) == [("a", "", "a"), ("b", "", "b")]
    with track("around"):
        tags = asyncio.run(main())
    assert tags == [("around/a", "around", "around/a"), ("around/b", "around", "around/b")]
    assert current() is NOWHERE


def test_a_track_may_be_left_in_another_context_than_it_was_entered_in() -> None:
    block = track("fixture")
    contextvars.copy_context().run(block.__enter__)
    block.__exit__(None, None, None)
    seen: list[str] = []
    in_thread(lambda: seen.append(current().tag))
    assert seen == [""]


def test_a_name_must_be_a_str_that_can_be_written() -> None:
    with pytest.raises(TypeError, match="must be a str, not int"), track(3):  # type: ignore[arg-type]  # on purpose
        pass
    with pytest.raises(ValueError, match="surrogates not allowed"), track("\ud800"):
        pass
    assert current() is NOWHERE


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_child_counts_from_zero(client: Client) -> None:
    with track("parent") as tracked:
        client.call(MODEL, "before")
        child = os.fork()
        if not child:
            # Outside pytest's reach: only the exit code tells.
            client.call(MODEL, "in the child")
            os._exit(0 if (tracked.requests, client.usage.requests) == (1, 1) else 1)
        assert os.waitpid(child, 0)[1] == 0
        client.call(MODEL, "after")
    assert tracked.requests == client.usage.requests == 2
