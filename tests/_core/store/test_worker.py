"""The worker thread and its batches."""

import asyncio
import threading
from collections.abc import Iterator

import pytest

from llm_provider._core.runtime.event_loop import inbox_here
from llm_provider._core.store.worker import BatchQueue, Worker


@pytest.fixture
def worker() -> Iterator[Worker]:
    worker = Worker("test")
    yield worker
    worker.close()


@pytest.fixture
def gate() -> threading.Event:
    return threading.Event()


def test_an_error_goes_to_whoever_asked(worker: Worker) -> None:
    with pytest.raises(ZeroDivisionError):
        worker.submit(lambda: 1 / 0).result(60)
    assert worker.submit(lambda: "still alive").result(60) == "still alive"


def test_closing_without_waiting_does_not_end_the_next_thread(worker: Worker) -> None:
    for number in range(50):
        gate = threading.Event()
        worker.submit(lambda gate=gate: gate.wait(60))
        worker.close(wait=False)
        after = worker.submit(lambda number=number: number)
        gate.set()
        assert after.result(60) == number


def test_flushing_waits_for_earlier_items(worker: Worker, gate: threading.Event) -> None:
    done: list[int] = []
    batches: BatchQueue[int, None] = BatchQueue(worker, lambda items: [done.append(item) for item in items])
    batches.flush()
    worker.submit(lambda: gate.wait(60))
    for number in range(3):
        batches.submit(number)
    threading.Timer(0.05, gate.set).start()
    batches.flush()
    assert (done, len(batches)) == ([0, 1, 2], 0)
    assert batches.submit(3).result(60) is None


async def test_a_loop_is_woken_once_for_a_batch(worker: Worker, gate: threading.Event) -> None:
    batches: BatchQueue[int, int] = BatchQueue(worker, lambda items: items)
    loop, wakes = asyncio.get_running_loop(), []
    wake = loop.call_soon_threadsafe
    loop.call_soon_threadsafe = lambda *arguments: (wakes.append(1), wake(*arguments))  # type: ignore[method-assign]  # counted
    worker.submit(lambda: gate.wait(60))
    futures = [batches.submit_from(inbox_here(), number) for number in range(50)]
    assert not futures[7].cancel()
    gate.set()
    assert await asyncio.gather(*futures) == list(range(50))
    assert len(wakes) == 1


def test_a_loop_that_ended_harms_nobody(worker: Worker, gate: threading.Event) -> None:
    done: list[int] = []
    batches: BatchQueue[int, None] = BatchQueue(worker, lambda items: [done.append(item) for item in items])

    async def ask() -> None:
        worker.submit(lambda: gate.wait(60))
        batches.submit_from(inbox_here(), 1)

    asyncio.run(ask())
    other = batches.submit(2)
    gate.set()
    other.result(60)
    assert batches.submit(3).result(60) is None
    assert done == [1, 2, 3]
