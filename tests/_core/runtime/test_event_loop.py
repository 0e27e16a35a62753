"""The background loop: one per process, waits that cancel, a clean end."""

import asyncio
import gc
import linecache
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType, SimpleNamespace
from typing import Any

import pytest

from llm_provider import Client, Stream
from llm_provider._core.runtime import event_loop
from llm_provider._features.tool_rounds import loop as tool_loop
from llm_provider.simulator import Simulator
from loop_support import run_threads
from support import RunScript, wait_until


async def where() -> tuple[int, int]:
    return threading.get_ident(), id(asyncio.get_running_loop())


def test_there_is_one_loop_for_all_threads() -> None:
    seen: set[tuple[int, int]] = set()
    run_threads(*[lambda: seen.add(event_loop.wait(where()))] * 20)
    assert len(seen) == 1
    assert threading.get_ident() not in {thread for thread, _ in seen}


def test_a_cancelled_job_ends_at_once_though_its_task_goes_on() -> None:
    outcomes: list[object] = []
    interrupted, ended, release = threading.Event(), threading.Event(), threading.Event()

    async def work() -> str:
        while not release.is_set():
            await asyncio.sleep(0.01)
        ended.set()
        return "late"

    def finished(outcome: object) -> None:
        outcomes.append(type(outcome))
        interrupted.set()

    # As single flight does while other calls need the request of a task.
    job = event_loop.BackgroundTask(work(), finished, cancel=lambda task: None).start()
    job.cancel()
    assert interrupted.wait(60)
    release.set()
    assert ended.wait(60)
    job.cancel()
    event_loop.submit(where()).result(60)
    assert outcomes == [asyncio.CancelledError]


async def test_a_follow_up_does_not_wait_for_all_posted_functions() -> None:
    done: list[str] = []
    inbox, everything = event_loop.Inbox(asyncio.get_running_loop()), asyncio.Event()

    def begun(number: int) -> None:
        done.append(f"began {number}")
        asyncio.get_running_loop().call_soon(sent, number)

    def sent(number: int) -> None:
        done.append(f"sent {number}")
        if number == 99:
            everything.set()

    for number in range(100):
        inbox.post(begun, number)
    await asyncio.wait_for(everything.wait(), 10)
    for step in ("began", "sent"):
        assert [entry for entry in done if entry.startswith(step)] == [f"{step} {n}" for n in range(100)]
    assert done.index("sent 0") < done.index("began 20")


def test_functions_posted_together_wake_a_loop_once_and_a_closed_loop_loses_them() -> None:
    wakes: queue.SimpleQueue[object] = queue.SimpleQueue()

    class Woken(asyncio.SelectorEventLoop):
        def call_soon_threadsafe(self, *arguments: Any, **named: Any) -> asyncio.Handle:
            wakes.put(arguments)
            return super().call_soon_threadsafe(*arguments, **named)

    loop, done = Woken(), list[int]()
    inbox = event_loop.Inbox(loop)

    async def post(*numbers: int) -> bool:
        for number in numbers:
            inbox.post_with_others(done.append, number)
        return wakes.empty()

    for number in range(3):
        assert event_loop.submit(post(2 * number, 2 * number + 1)).result(60)
        wakes.get(timeout=60)
        loop.run_until_complete(asyncio.sleep(0))
    assert wakes.empty()
    inbox.post_with_others(done.append, 6)  # from a thread without a loop
    loop.run_until_complete(asyncio.sleep(0))
    assert done == list(range(7))
    loop.close()
    event_loop.submit(post(7)).result(60)
    inbox.post_with_others(done.append, 8)


def test_importing_starts_nothing_and_the_end_is_quiet(run_script: RunScript) -> None:
    ended = run_script(
        """
        import asyncio, threading
        from llm_provider import Client, call
        from llm_provider._core.runtime import event_loop
        assert threading.active_count() == 1
        async def forever():
            await asyncio.sleep(3600)
        event_loop.current().loop.slow_callback_duration = 60  # of a busy machine
        event_loop.submit(forever())
        """,
        PYTHONDEVMODE="1",
    )
    assert (ended.stdout, ended.stderr) == ("", "")


def test_connections_close_quietly_at_the_end(llm_simulator: Simulator, run_warm_script: RunScript) -> None:
    base_url = llm_simulator.url("openai")
    ended = run_warm_script(
        f"""
        from llm_provider import Client, call
        call("gpt-6.1-sol", "Hi", base_url={base_url!r})
        own = Client()
        own.call("gpt-6.1-sol", "Ho", base_url={base_url!r})
        dropped = Client()
        dropped.call("gpt-6.1-sol", "Hu", base_url={base_url!r})
        del dropped
        """
    )
    assert (ended.stdout, ended.stderr) == ("", "")


async def count_tasks() -> int:
    return len(asyncio.all_tasks())


def count_all_tasks() -> int:
    return sum(
        event_loop.submit(count_tasks(), inbox=inbox).result(60)
        for inbox in (event_loop.current().inbox, tool_loop._own_loop.start().inbox)
    )


def answer(question: str) -> str:
    return question


def read_stream(client: Client, prompt: str, **parameters: Any) -> None:
    with client.stream("gpt-6.1-sol", prompt, **parameters) as stream:
        for _ in stream:
            pass


def wait_for_answer(client: Client, prompt: str, **parameters: Any) -> None:
    client.call("gpt-6.1-sol", prompt, **parameters)


# Before the start there is nothing to cancel.
@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")
@pytest.mark.parametrize(
    "parameters", [{}, {"tools": [answer], "max_tool_rounds": 2}], ids=["call", "rounds"]
)
@pytest.mark.parametrize("ask", [wait_for_answer, read_stream])
def test_an_interrupt_at_any_line_leaves_no_call_behind(
    client: Client, simulator: Simulator, ask: Callable[..., None], parameters: dict[str, Any]
) -> None:
    ask(client, "Hi", **parameters)  # the SDK is loaded
    idle = count_all_tasks()
    simulator.configure(latency=600.0)
    task, stream = event_loop.BackgroundTask, Stream
    functions: list[Any] = [event_loop.wait, event_loop.submit, task.__init__, task.start]
    functions += [tool_loop.run_and_wait, stream.__mro__[1].__init__, stream.__next__]
    codes = {function.__code__ for function in functions}
    lines, last = 0, 0
    before = sys.gettrace()

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal lines
        if frame.f_code in codes and event == "line":
            lines += 1
            if lines == last:
                sys.settrace(None)
                interrupted.append(linecache.getline(frame.f_code.co_filename, frame.f_lineno))
                time.sleep(0.02)  # the loop goes on meanwhile
                raise KeyboardInterrupt
        return trace

    interrupted: list[str] = [""]
    while not any(wait in interrupted[-1] for wait in ("future.result()", "_items.get()")):
        lines, last = 0, last + 1
        sys.settrace(trace)
        with pytest.raises(KeyboardInterrupt) as kept:  # as a notebook keeps the last traceback
            ask(client, f"{last}", **parameters)
        sys.settrace(before)  # an error ends it
        assert wait_until(lambda: count_all_tasks() == idle, 5), (interrupted[-1], kept)
    assert last > 10
    del kept
    gc.collect()  # here the warnings of what never began are ignored


# --- signals. tests/end_to_end/test_notebook.py interrupts real cells --------------------------------------
async def connected() -> int:
    """The descriptor that wakes the loop on signals; -1 if there is none."""
    event_loop.wake_on_signals(asyncio.get_running_loop())
    there = signal.set_wakeup_fd(-1)
    signal.set_wakeup_fd(there)
    return there


def test_a_script_keeps_its_signals() -> None:
    assert asyncio.run(connected()) == -1


async def test_a_kernel_is_woken_once_and_never_against_its_will(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = SimpleNamespace(IPKernelApp=SimpleNamespace(initialized=lambda: True))
    monkeypatch.setitem(sys.modules, "ipykernel.kernelapp", kernel)  # type: ignore[arg-type]  # as far as it is used
    monkeypatch.setattr(event_loop, "_waking", [])
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGUSR1, lambda: None)
    assert await connected() != -1
    assert event_loop._waking == []
    loop.remove_signal_handler(signal.SIGUSR1)
    first, second = await connected(), await connected()
    assert first == second != -1
    woken, waker = event_loop._waking
    assert first == waker.fileno()
    # The default handler would end the program.
    before = signal.signal(signal.SIGUSR1, lambda *_: None)
    signal.raise_signal(signal.SIGUSR1)
    signal.signal(signal.SIGUSR1, before)
    signal.set_wakeup_fd(-1)
    event_loop._drain(woken)
    with pytest.raises(BlockingIOError):
        woken.recv(1)
    loop.remove_reader(woken)
    woken.close()
    waker.close()


@pytest.mark.parametrize("way", ["task", "timeout"])
def test_a_cancelled_task_ends_after_the_future(way: str) -> None:
    async def main() -> list[str]:
        future: event_loop.UncancellableFuture[str] = event_loop.UncancellableFuture()
        seen = []

        async def work() -> None:
            try:
                async with asyncio.timeout(0.001 if way == "timeout" else None):
                    seen.append(await future)
            except TimeoutError:
                seen.append("timed out")
            finally:
                seen.append(f"ended, done={future.done()}")

        task = asyncio.create_task(work())
        await asyncio.sleep(0.05)
        if way == "task":
            task.cancel()
            await asyncio.sleep(0.05)
        assert not task.done()
        future.set_result("result")
        await asyncio.wait([task])
        assert task.cancelled() == (way == "task")
        return seen

    ended = ["ended, done=True"]
    assert asyncio.run(main()) == (["timed out", *ended] if way == "timeout" else ended)
