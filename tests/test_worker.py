"""The worker thread of blocking disk work."""

from __future__ import annotations

import threading

import pytest

from llm_provider._worker import Worker
from support import RunScript


def test_work_is_done_in_order_in_one_thread() -> None:
    worker = Worker("test")
    seen: list[tuple[int, int]] = []
    futures = [
        worker.submit(lambda number=number: seen.append((number, threading.get_ident())))
        for number in range(50)
    ]
    for future in futures:
        future.result(5)
    worker.close()
    assert [number for number, _ in seen] == list(range(50))
    assert len({thread for _, thread in seen}) == 1


def test_an_error_goes_to_whoever_asked() -> None:
    worker = Worker("test")
    with pytest.raises(ZeroDivisionError):
        worker.submit(lambda: 1 / 0).result(5)
    assert worker.submit(lambda: "still alive").result(5) == "still alive"
    worker.close()


def test_closing_finishes_what_is_queued_and_a_later_task_starts_anew() -> None:
    worker = Worker("test")
    gate = threading.Event()
    worker.submit(lambda: gate.wait(5))
    last = worker.submit(lambda: "last")
    gate.set()
    worker.close()
    assert last.result(0) == "last"
    assert worker.submit(lambda: "again").result(5) == "again"
    worker.close()
    worker.close()


def test_closing_without_waiting_does_not_end_the_next_thread() -> None:
    worker = Worker("test")
    for number in range(50):
        gate = threading.Event()
        worker.submit(lambda gate=gate: gate.wait(5))
        worker.close(wait=False)
        after = worker.submit(lambda number=number: number)
        gate.set()
        assert after.result(5) == number
    worker.close()


def test_the_last_task_runs_after_the_others_and_only_in_a_thread_that_was_started() -> None:
    worker, seen = Worker("test"), []
    worker.close(last=lambda: seen.append("nothing was started"))
    worker.submit(lambda: seen.append("work"))
    worker.close(last=lambda: seen.append("last"))
    assert seen == ["work", "last"]


def test_it_works_while_the_interpreter_ends(run_script: RunScript) -> None:
    shown = run_script(
        """
        import atexit
        from llm_provider._worker import Worker
        worker = Worker("test")
        worker.submit(lambda: None).result()
        atexit.register(lambda: print(worker.submit(lambda: "written at exit").result(5)))
        """
    )
    assert shown.stdout == "written at exit\n"
