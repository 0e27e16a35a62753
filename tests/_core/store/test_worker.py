"""The worker thread and its batches."""

import asyncio
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from types import FrameType
from typing import Any

import pytest

from llm_provider._core.runtime import clock
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
        assert not batches.submit(number).cancel()
    threading.Timer(0.05, gate.set).start()
    batches.flush()
    assert (done, len(batches)) == ([0, 1, 2], 0)
    assert batches.submit(3).result(60) is None


@pytest.mark.parametrize("line", sorted({line or 0 for _, _, line in BatchQueue._run.__code__.co_lines()}))
def test_an_item_is_done_at_whichever_line_of_a_batch_it_comes(worker: Worker, line: int) -> None:
    batches: BatchQueue[str, str] = BatchQueue(worker, lambda items: items)
    late: list[Future[str]] = []

    def trace(frame: FrameType, event: str, _: object) -> Any:
        if frame.f_code is not BatchQueue._run.__code__:
            return None
        if event == "line" and frame.f_lineno == line and not late:
            late.append(batches.submit("late"))
        return trace

    worker.submit(lambda: sys.settrace(trace)).result(60)
    assert batches.submit("early").result(60) == "early"
    worker.submit(lambda: sys.settrace(None)).result(60)
    assert [future.result(60) for future in late] == ["late"] * len(late)
    assert len(batches) == 0


def test_a_batch_waits_for_more_only_where_many_arrive(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, slept, sizes = 1.0, list[float](), list[int]()
    monkeypatch.setattr(clock, "monotonic", lambda: now)
    monkeypatch.setattr(clock, "sleep", slept.append)
    batches: BatchQueue[int, int] = BatchQueue(
        worker, lambda items: (sizes.append(len(items)), items)[1], 0.005
    )

    def send(at: float, count: int) -> None:
        nonlocal now
        gate = threading.Event()
        worker.submit(lambda: gate.wait(60))
        futures = [batches.submit(number) for number in range(count)]
        now = at
        gate.set()
        assert [future.result(60) for future in futures] == list(range(count))

    send(1.0, 1)
    assert slept == []
    # Twenty in a millisecond are 20,000 a second. The mean of 50 ms rises above 1,000 with the third.
    for number in range(1, 4):
        send(1.0 + number / 1000, 20)
        assert slept == []
    send(1.004, 20)
    assert slept == [pytest.approx(0.005 * 1.176, rel=0.01)]
    for number in range(100):
        send(1.005 + number / 1000, 20)
    assert max(slept) == pytest.approx(0.025), "no longer than five times as long"
    send(2.0, 20)
    assert len(slept) == 101, "what arrived long ago does not count"
    assert sizes == [1, *[20] * 105]


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
