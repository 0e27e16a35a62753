"""Threads, timers, and functions in threads: their outcomes, also those that no future can hold."""

import queue

from llm_provider._core.runtime.threads import start_timer
from support import RunScript


def test_no_thread_and_no_timer_delays_the_exit_of_a_process(run_script: RunScript) -> None:
    ended = run_script(
        """
        import threading
        from llm_provider._core.runtime.threads import start_thread, start_timer
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
