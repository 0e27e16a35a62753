"""Runs a function in a thread of its own, for an event loop that must not wait.

The threads of asyncio's own pool would delay the exit of the process until the function returns.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import Callable
from typing import TypeAlias, TypeVar, cast

T = TypeVar("T")

Outcome: TypeAlias = tuple[object, BaseException | None]
"""What a function returned, or what it raised."""


async def run_in_thread(
    function: Callable[[], object], name: str, ended: Callable[[], object] = lambda: None
) -> Outcome:
    """Call a function in a thread with this name. If the caller is cancelled, it still runs to its end.

    `ended` is called on the loop as soon as the function has ended.
    """
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
        threading.Thread(target=work, name=name, daemon=True).start()
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
