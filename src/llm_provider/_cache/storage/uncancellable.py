"""A future that a task can await, but not cancel, so that a call ends only once its answer is stored.

Imported, like asyncio, when an event loop needs one.
"""

from __future__ import annotations

import asyncio
from typing import Any, TypeVar

T = TypeVar("T")


class UncancellableFuture(asyncio.Future[T]):
    """A future that cannot be cancelled.

    A task that is cancelled while it awaits the future is cancelled once the future is done. `asyncio.shield`
    and a second wait would do the same in two more iterations of the event loop.

    >>> async def example():
    ...     async def work():
    ...         try:
    ...             await done
    ...         finally:
    ...             print("the future is", done.result())
    ...     done = UncancellableFuture()
    ...     task = asyncio.create_task(work())
    ...     await asyncio.sleep(0)
    ...     task.cancel()
    ...     await asyncio.sleep(0.01)
    ...     done.set_result("done")
    ...     await asyncio.wait([task])
    ...     return task.cancelled()
    >>> asyncio.run(example())
    the future is done
    True
    """

    def cancel(self, msg: Any | None = None) -> bool:
        """Return False: nothing is cancelled."""
        return False
