"""Threads, timers, and functions in threads: their outcomes, also those that no future can hold."""

import asyncio
import contextvars
import queue
import threading

import pytest

from llm_provider._runtime.threads import result_in_thread, run_in_thread, start_timer
from support import RunScript

variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="")


def test_no_thread_and_no_timer_delays_the_exit_of_a_process(run_script: RunScript) -> None:
    ended = run_script(
        """
        import threading
        from llm_provider._runtime.threads import start_thread, start_timer
        entered = threading.Event()
        start_thread(lambda: (entered.set(), threading.Event().wait()), "never ends")
        start_timer(3600.0, print)
        print(entered.wait(60))
        """
    )
    assert ended.stdout == "True\n"


def test_a_timer_calls_its_function_unless_it_is_cancelled() -> None:
    called = queue.SimpleQueue[str]()
    start_timer(3600.0, lambda: called.put("cancelled")).cancel()
    start_timer(0.0, lambda: called.put("first"))
    assert called.get(timeout=60) == "first"
    assert called.empty()


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit, StopIteration])
def test_what_a_function_raises_is_a_value(error: type[BaseException]) -> None:
    def fail() -> None:
        raise error

    ended: list[bool] = []
    value, raised = asyncio.run(run_in_thread(fail, "test", lambda: ended.append(True)))
    assert value is None
    assert isinstance(raised, error)
    assert ended == [True]


def test_a_result_is_returned_and_an_error_raised() -> None:
    def name() -> str:
        return f"{threading.current_thread().name} {variable.get()}"

    variable.set("copied")
    assert asyncio.run(result_in_thread(name, "its name")) == "its name copied"
    with pytest.raises(ZeroDivisionError):
        asyncio.run(result_in_thread(lambda: 1 // 0, "test"))


def test_nobody_waits_for_a_function_when_the_caller_is_cancelled() -> None:
    entered, leave = threading.Event(), threading.Event()

    def wait() -> None:
        entered.set()
        leave.wait(60)

    async def main() -> None:
        task = asyncio.create_task(run_in_thread(wait, "test"))
        await asyncio.to_thread(entered.wait, 60)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    leave.set()
