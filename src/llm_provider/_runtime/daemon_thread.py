"""Runs a function in a thread of its own, for an event loop that must not wait.

The threads of asyncio's own pool would delay the exit of the process until the function returns.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")

Outcome: TypeAlias = tuple[Any, BaseException | None]
"""What a function returned, or what it raised."""


async def run_in_thread(
    function: Callable[[], Any], name: str, ended: Callable[[], object] = lambda: None
) -> Outcome:
    """Call a function in a thread. It cannot be interrupted: if the caller is cancelled, it runs to its end.

    Args:
        function: The function.
        name: The name of the thread.
        ended: Called on the loop as soon as the function has ended.
    """
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[Outcome] = loop.create_future()
    context = contextvars.copy_context()

    def settle(found: Outcome) -> None:
        ended()
        if not outcome.done():
            outcome.set_result(found)

    def work() -> None:
        found: Outcome
        try:
            found = context.run(function), None
        except BaseException as error:  # given to the task that waits
            found = None, error
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(settle, found)

    try:
        threading.Thread(target=work, name=name, daemon=True).start()
    except BaseException:  # the system has no more threads
        ended()
        raise
    return await outcome


async def result_in_thread(function: Callable[[], T], name: str) -> T:
    """What a function returns, or raises, in a thread of its own."""
    value, error = await run_in_thread(function, name)
    if error is not None:
        raise error
    result: T = value
    return result
