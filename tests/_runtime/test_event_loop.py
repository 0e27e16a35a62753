"""The background loop: one per process, waits that cancel, a clean end."""

from __future__ import annotations

import asyncio
import contextvars
import threading

import pytest

from llm_provider._runtime import event_loop
from llm_provider.simulator import Simulator
from support import RunScript


async def where() -> tuple[int, int]:
    return threading.get_ident(), id(asyncio.get_running_loop())


def test_there_is_one_loop_for_all_threads() -> None:
    seen: set[tuple[int, int]] = set()
    threads = [
        threading.Thread(target=lambda: seen.add(event_loop.wait(event_loop.submit(where()))))
        for _ in range(20)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 1
    assert threading.get_ident() not in {thread for thread, _ in seen}


def test_cancelling_the_future_cancels_the_work() -> None:
    cancelled = threading.Event()

    async def work() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    future = event_loop.submit(work())
    event_loop.submit(where()).result(60)
    future.cancel()
    assert cancelled.wait(60)


def test_what_is_no_task_is_begun_in_the_callers_context_and_cancelled() -> None:
    seen: list[object] = []
    name = contextvars.ContextVar("name", default="nobody's")
    began, ended = threading.Event(), threading.Event()

    class Waits(event_loop.Job[str]):
        def _begin(self) -> None:
            seen.extend(
                (self._context.run(name.get), asyncio.get_running_loop() is event_loop.current().loop)
            )
            began.set()

        def _give_up(self) -> None:
            self._end(asyncio.CancelledError())
            # A second end is nobody's.
            self._end("late")
            ended.set()

    class Fails(event_loop.Job[str]):
        def _begin(self) -> None:
            raise OSError("cannot begin")

    name.set("the caller's")
    future = event_loop.submit(Waits)
    assert began.wait(5)
    future.cancel()
    assert ended.wait(5)
    assert seen == ["the caller's", True]
    with pytest.raises(OSError, match="cannot begin"):
        event_loop.wait(event_loop.submit(Fails))


def test_what_follows_from_the_first_does_not_wait_for_all_that_is_posted() -> None:
    done: list[str] = []

    async def main() -> None:
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

    asyncio.run(main())
    for step in ("began", "sent"):
        assert [entry for entry in done if entry.startswith(step)] == [f"{step} {n}" for n in range(100)]
    assert done.index("sent 0") < done.index("began 20")


def test_errors_come_through() -> None:
    async def fail() -> None:
        raise LookupError("lost")

    with pytest.raises(LookupError, match="lost"):
        event_loop.wait(event_loop.submit(fail()))


def test_importing_starts_nothing_and_the_end_is_quiet(run_script: RunScript) -> None:
    ended = run_script(
        """
        import asyncio, threading
        from llm_provider import Client, call
        from llm_provider._runtime import event_loop
        assert threading.active_count() == 1
        async def forever():
            await asyncio.sleep(3600)
        event_loop.submit(forever())
        """,
        PYTHONDEVMODE="1",
    )
    assert (ended.stdout, ended.stderr) == ("", "")


def test_open_connections_are_closed_quietly_at_the_end(
    llm_simulator: Simulator, run_script: RunScript
) -> None:
    base_url = llm_simulator.url("openai")
    ended = run_script(
        f"""
        from llm_provider import Client, call
        call("gpt-6.1-sol", "Hi", base_url={base_url!r})
        own = Client()
        own.call("gpt-6.1-sol", "Ho", base_url={base_url!r})
        dropped = Client()
        dropped.call("gpt-6.1-sol", "Hu", base_url={base_url!r})
        del dropped
        """,
    )
    assert (ended.stdout, ended.stderr) == ("", "")
