"""The workers of a live batch."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor

from llm_provider import RateLimitError, Response
from llm_provider._calls.batch.driver import Observers, iterate
from llm_provider._calls.batch.worker_pool import LiveWork
from llm_provider._runtime import event_loop
from llm_provider._types.messages import Prompt


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

    work = LiveWork(iter, send, event_loop.cancel_task, 2, lambda *_: None)
    with ThreadPoolExecutor(1) as reader:
        inputs = (str(number) for number in range(work.width + 5))
        results = reader.submit(list, iterate([(work, inputs)], Observers())).result(30)
    assert len(results) == work.width + 5
