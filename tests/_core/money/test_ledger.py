"""The class that users read. Its table and its figure are tested with `ledger_views`."""

import asyncio
import contextvars
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import pytest

from llm_provider import Client, Ledger, LedgerRow, RequestError, Usage, track
from llm_provider._core.money.totals import NOWHERE, Key, Posting, Totals, find_tracks, row_of
from llm_provider._core.types.usage import COUNTS
from llm_provider.simulator import Simulator

ALL = Key("", "", "", "")


def test_the_sums_of_all_rows(ledger: Ledger) -> None:
    amounts = [str(amount) for amount in (ledger.spent, ledger.wasted, ledger.saved)]
    assert amounts == ["0.01620006", "0.001", "0.0054"]
    assert ledger.cost == Decimal("0.01720006")
    assert (ledger.requests, ledger.hits, ledger.failed, ledger.unknown) == (4, 1, 2, 1)
    assert ledger.unknown_at_most == Decimal("0.5")
    assert ledger.usage == Usage(
        input_tokens=3611, output_tokens=900, cache_read_input_tokens=600, reasoning_output_tokens=300
    )


def test_rows_can_be_summed_by_some_names(ledger: Ledger) -> None:
    assert [row.model for row in ledger] == ["claude-haiku-5-5", "gpt-6.1-sol"]
    (haiku, sol) = ledger.rows("tag")
    assert (haiku.tag, haiku.model, sol.tag, sol.model) == ("", "", "ablation", "")
    assert sol.spent == Decimal("0.0162")
    with pytest.raises(RequestError, match="not by colour"):
        ledger.rows("model", "colour")


def test_a_ledger_counts_on_and_one_without_a_bound_leaves_no_sum(ledger: Ledger, totals: Totals) -> None:
    before = ledger.spent
    totals.post(Posting(1.79e9, "answered", Key("xai", "m", "m", ""), Decimal(1)))
    assert (ledger.spent, len(ledger.rows())) == (before + 1, 3)
    totals.post(Posting(0.0, "answered", Key("anthropic", "claude-haiku-5-5", "claude-haiku-5-5", ""), None))
    assert (ledger.unknown, ledger.unknown_at_most) == (2, None)
    assert [row.unknown_at_most for row in ledger.rows()] == [None, Decimal("0.5"), 0]


def test_a_row_of_nothing_is_zero() -> None:
    row = row_of(ALL, [])
    assert (row.requests, row.usage, row.spent, row.unknown_at_most) == (0, Usage(), 0, 0)
    assert isinstance(row.spent, Decimal)


def test_as_a_dict_it_has_every_field_with_the_counts_one_by_one(ledger: Ledger) -> None:
    (_, sol) = ledger.rows()
    values = sol.as_dict()
    fields = [name for name in LedgerRow.__dataclass_fields__ if name != "usage"]
    assert set(values) == {*fields, *COUNTS}
    assert set(sol.dollars()) == {"spent", "wasted", "saved", "unknown_at_most"}
    assert (values["tag"], values["requests"], values["spent"]) == ("ablation", 3, Decimal("0.0162"))
    assert Usage(**{name: values[name] for name in COUNTS}) == sol.usage


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
            await asyncio.get_running_loop().run_in_executor(None, lambda: alone.append(find_tracks().tag))
            with_context = await asyncio.to_thread(lambda: find_tracks().tag)
            await ready.wait()
            return find_tracks().tag, alone[0], with_context

    async def main() -> list[tuple[str, str, str]]:
        ready = asyncio.Barrier(2)
        return await asyncio.gather(task("a", ready), task("b", ready))

    assert asyncio.run(main()) == [("a", "", "a"), ("b", "", "b")]
    with track("around"):
        tags = asyncio.run(main())
    assert tags == [("around/a", "around", "around/a"), ("around/b", "around", "around/b")]
    assert find_tracks() is NOWHERE


def test_a_track_may_be_left_in_another_context_than_it_was_entered_in() -> None:
    block = track("fixture")
    contextvars.copy_context().run(block.__enter__)
    block.__exit__(None, None, None)
    seen: list[str] = []
    in_thread(lambda: seen.append(find_tracks().tag))
    assert seen == [""]


def test_a_name_must_be_a_str_that_can_be_written() -> None:
    with pytest.raises(TypeError, match="must be a str, not int"), track(3):  # type: ignore[arg-type]  # on purpose
        pass
    with pytest.raises(ValueError, match="surrogates not allowed"), track("\ud800"):
        pass
    assert find_tracks() is NOWHERE


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
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
