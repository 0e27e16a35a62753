"""Threads and timers, which do not delay the exit of the process. asyncio's own belong to the event loop.

A simulation can replace `start_thread` and `start_timer` here, so they are looked up when they are called.
"""

import contextlib
import contextvars
from collections.abc import Callable
from threading import Thread, Timer
from typing import TypeAlias, TypeVar, cast

__all__ = ["Outcome", "Thread", "Timer", "result_in_thread", "run_in_thread", "start_thread", "start_timer"]

T = TypeVar("T")

Outcome: TypeAlias = tuple[object, BaseException | None]
"""What a function returned, or what it raised."""


def start_thread(work: Callable[[], object], name: str) -> Thread:
    """Call a function in a thread with this name."""
    thread = Thread(target=work, name=name, daemon=True)
    thread.start()
    return thread


def start_timer(seconds: float, work: Callable[[], object]) -> Timer:
    """Call a function in a thread after some seconds, unless the timer is cancelled before."""
    timer = Timer(seconds, work)
    timer.daemon = True
    timer.start()
    return timer


async def run_in_thread(
    function: Callable[[], object], name: str, ended: Callable[[], object] = lambda: None
) -> Outcome:
    """Call a function in a named thread, and `ended` on the loop at its end, also if the caller is cancelled.

    The threads of asyncio's own pool would delay the exit of the process until then.
    """
    import asyncio

    loop = asyncio.get_running_loop()
    future: asyncio.Future[Outcome] = loop.create_future()
    context = contextvars.copy_context()

    def settle(outcome: Outcome) -> None:
        ended()
        if not future.done():
            future.set_result(outcome)

    def work() -> None:
        outcome: Outcome
        try:
            outcome = context.run(function), None
        except BaseException as error:  # given to the task that waits
            outcome = None, error
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(settle, outcome)

    try:
        start_thread(work, name)
    except BaseException:  # the system has no more threads
        ended()
        raise
    return await future


async def result_in_thread(function: Callable[[], T], name: str) -> T:
    """What a function returns, or raises, in a thread of its own."""
    value, error = await run_in_thread(function, name)
    if error is not None:
        raise error
    return cast("T", value)
