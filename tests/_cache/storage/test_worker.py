"""The worker thread and its batches."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from functools import partial

import pytest

from llm_provider._cache.storage.worker import BatchQueue, Worker
from loop_support import run_threads
from support import RunScript


@pytest.fixture
def worker() -> Iterator[Worker]:
    worker = Worker("test")
    yield worker
    worker.close()


@pytest.fixture
def gate() -> threading.Event:
    return threading.Event()


def test_work_is_done_in_order_in_one_thread(worker: Worker) -> None:
    seen: list[tuple[int, int]] = []
    futures = [
        worker.submit(lambda number=number: seen.append((number, threading.get_ident())))
        for number in range(50)
    ]
    for future in futures:
        future.result(60)
    worker.close()
    assert [number for number, _ in seen] == list(range(50))
    assert len({thread for _, thread in seen}) == 1


def test_an_error_goes_to_whoever_asked(worker: Worker) -> None:
    with pytest.raises(ZeroDivisionError):
        worker.submit(lambda: 1 / 0).result(60)
    assert worker.submit(lambda: "still alive").result(60) == "still alive"


def test_closing_finishes_the_queue_and_a_later_task_starts_a_thread(
    worker: Worker, gate: threading.Event
) -> None:
    worker.submit(lambda: gate.wait(60))
    last = worker.submit(lambda: "last")
    gate.set()
    worker.close()
    assert last.result(0) == "last"
    assert worker.submit(lambda: "again").result(60) == "again"
    worker.close()


def test_closing_without_waiting_does_not_end_the_next_thread(worker: Worker) -> None:
    for number in range(50):
        gate = threading.Event()
        worker.submit(lambda gate=gate: gate.wait(60))
        worker.close(wait=False)
        after = worker.submit(lambda number=number: number)
        gate.set()
        assert after.result(60) == number


def test_the_last_task_runs_after_the_others_and_only_in_a_thread_that_was_started(worker: Worker) -> None:
    seen: list[str] = []
    assert not worker.close(last=lambda: seen.append("nothing was started"))
    worker.submit(lambda: seen.append("work"))
    assert worker.close(last=lambda: seen.append("last"))
    assert seen == ["work", "last"]


def test_it_works_while_the_interpreter_ends(run_script: RunScript) -> None:
    output = run_script(
        """
        import atexit
        from llm_provider._cache.storage.worker import Worker
        worker = Worker("test")
        worker.submit(lambda: None).result()
        atexit.register(lambda: print(worker.submit(lambda: "written at exit").result(60)))
        """
    )
    assert output.stdout == "written at exit\n"


def test_items_that_come_while_the_worker_is_busy_are_one_batch(
    worker: Worker, gate: threading.Event
) -> None:
    sizes: list[int] = []

    def work(items: list[int]) -> list[int]:
        sizes.append(len(items))
        return [-item for item in items]

    batches = BatchQueue(worker, work)
    worker.submit(lambda: gate.wait(60))
    futures = [batches.submit(number) for number in range(50)]
    assert (len(batches), any(future.cancel() for future in futures)) == (50, False)
    gate.set()
    assert [future.result(60) for future in futures] == [-number for number in range(50)]
    assert sizes == [50]


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


def test_a_loop_is_woken_once_for_a_batch(worker: Worker, gate: threading.Event) -> None:
    batches: BatchQueue[int, int] = BatchQueue(worker, lambda items: items)

    async def ask() -> list[int]:
        loop, wakes = asyncio.get_running_loop(), []
        wake = loop.call_soon_threadsafe
        loop.call_soon_threadsafe = lambda *arguments: (wakes.append(1), wake(*arguments))  # type: ignore[method-assign]  # counted
        worker.submit(lambda: gate.wait(60))
        futures = [batches.submit_from(loop, number) for number in range(50)]
        assert not futures[7].cancel()
        gate.set()
        results = await asyncio.gather(*futures)
        assert len(wakes) == 1
        return results

    assert asyncio.run(ask()) == list(range(50))


def test_a_loop_that_ended_harms_nobody(worker: Worker, gate: threading.Event) -> None:
    done: list[int] = []
    batches: BatchQueue[int, None] = BatchQueue(worker, lambda items: [done.append(item) for item in items])

    async def ask() -> None:
        worker.submit(lambda: gate.wait(60))
        batches.submit_from(asyncio.get_running_loop(), 1)

    asyncio.run(ask())
    other = batches.submit(2)
    gate.set()
    other.result(60)
    assert batches.submit(3).result(60) is None
    assert done == [1, 2, 3]


def test_many_threads_and_loops_get_their_own_results(worker: Worker) -> None:
    batches: BatchQueue[int, int] = BatchQueue(worker, lambda items: [item * item for item in items])
    wrong: list[int] = []

    def from_a_thread(start: int) -> None:
        wrong.extend(n for n in range(start, start + 200) if batches.submit(n).result(60) != n * n)

    def from_a_loop(start: int) -> None:
        async def ask(number: int) -> None:
            if await batches.submit_from(asyncio.get_running_loop(), number) != number * number:
                wrong.append(number)

        async def all_of_them() -> None:
            await asyncio.gather(*(ask(number) for number in range(start, start + 200)))

        asyncio.run(all_of_them())

    ways = [from_a_thread, from_a_loop] * 4
    run_threads(*(partial(way, 1000 * number) for number, way in enumerate(ways)))
    assert wrong == []
