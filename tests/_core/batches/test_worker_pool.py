"""The workers of a live batch."""

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from llm_provider import Client, RateLimitError, Response
from llm_provider._core.batches.driver import Observers, iterate
from llm_provider._core.batches.interrupt import StoredAnswers
from llm_provider._core.batches.worker_pool import LiveWork
from llm_provider._core.runtime import event_loop
from llm_provider._core.types.messages import Prompt
from llm_provider.simulator import Simulator


def test_a_call_that_arrives_while_all_workers_end_is_served() -> None:
    gate, waiting = asyncio.Event(), 0

    async def send(prompt: Prompt) -> Response:
        nonlocal waiting
        waiting += 1
        if waiting < work.workers:
            await gate.wait()
        # One worker lets the others go and does the rest. All end in one event-loop iteration. Before that
        # the reader has time to send the last inputs on their way.
        gate.set()
        time.sleep(0.01)  # noqa: ASYNC251 -- the loop is to be busy
        raise RateLimitError(str(prompt))

    with Client() as client:
        stored = StoredAnswers(client._engine, "off")
    work = LiveWork(iter, send, event_loop.cancel_task, 2, lambda *_: None, stored)
    with ThreadPoolExecutor(1) as reader:
        inputs = (str(number) for number in range(work.width + 5))
        results = reader.submit(list, iterate([(work, inputs)], Observers())).result(30)
    assert len(results) == work.width + 5


@pytest.mark.parametrize("way", ["batch", "tasks"])
def test_what_is_on_its_way_to_a_loop_is_not_sent_after_an_interrupt(simulator: Simulator, way: str) -> None:
    prompts = [f"What is {number}+1?" for number in range(4000)]
    with Client(cache=False) as client:
        if way == "batch":
            results = client.iter_many("gpt-6.1-sol", prompts)
            next(results)
            results.close()
        else:

            async def ask_all() -> None:
                tasks = [asyncio.ensure_future(client.acall("gpt-6.1-sol", prompt)) for prompt in prompts]
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                for task in tasks:
                    task.cancel()
                await asyncio.wait(tasks)

            asyncio.run(ask_all())
        # The loop does what was posted to it before.
        event_loop.submit(asyncio.sleep(0.1)).result(60)
    # Some were under way. The rest had been read, and would have been sent for seconds.
    assert simulator.ledger().requests < len(prompts) / 8
