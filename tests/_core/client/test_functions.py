"""The functions of the module in scripts, threads, event loops, forked children and callbacks."""

import asyncio
import threading
from pathlib import Path

import pytest

from llm_provider import Client, Response
from llm_provider._core.runtime import event_loop
from llm_provider.simulator import Simulator
from support import TooSlowError, patiently

OPEN_FILES = Path("/proc/self/fd")


def test_a_hundred_threads_are_in_flight_together(simulator: Simulator, own_cache: Path) -> None:
    def attempt(longer: float) -> None:
        simulator.configure(latency=0.5 * longer)
        answers: list[Response] = []
        with Client(cache_dir=own_cache, cache="off") as client:

            def ask(number: int) -> None:
                answers.append(client.call("gpt-6.1-sol", f"What is {number}+0?"))

            threads = [threading.Thread(target=ask, args=(number,)) for number in range(100)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert sorted(int(answer.text) for answer in answers) == list(range(100))
        if simulator.ledger().peak_in_flight < 100:
            raise TooSlowError("the first had its answer before the last was sent")

    patiently(attempt)


async def test_async_calls_begin_with_few_requests_in_flight(client: Client, simulator: Simulator) -> None:
    simulator.configure(latency=0.3)
    await asyncio.gather(*(client.acall("gpt-6.1-sol", f"item {number}") for number in range(80)))
    # Eight at once, then two for each answer and some by the clock.
    assert 8 <= simulator.ledger().peak_in_flight < 80


def test_fifty_event_loops_one_after_the_other(client: Client, simulator: Simulator) -> None:
    def fifty(name: str) -> int:
        for number in range(50):
            answer = asyncio.run(client.acall("gpt-6.1-sol", f"{name} {number}"))
            assert answer.text == f"echo: {name} {number}"
        return len(list(OPEN_FILES.iterdir())) if OPEN_FILES.is_dir() else 0

    open_files = fifty("warm up, so that nearly every file of the cache is open")
    # One descriptor left open by each loop would be fifty; the cache may still open a shard's.
    assert fifty("again") < open_files + 10
    assert simulator.ledger().connections == 1


def test_a_call_on_the_loops_own_thread_raises(client: Client) -> None:
    async def callback() -> list[str]:
        refused = []
        for attempt in (
            lambda: client.call("gpt-6.1-sol", "Hi"),
            lambda: client.stream("gpt-6.1-sol", "Hi"),
            lambda: client.iter_many("gpt-6.1-sol", ["Hi"]),
            lambda: client.call_many("gpt-6.1-sol", ["Hi"]),
        ):
            with pytest.raises(RuntimeError, match="own event loop thread") as caught:
                attempt()
            refused.append(str(caught.value))
        with pytest.raises(RuntimeError, match="own event loop thread"):
            await client.acall("gpt-6.1-sol", "Hi")
        return refused

    assert len(event_loop.submit(callback()).result(60)) == 4
