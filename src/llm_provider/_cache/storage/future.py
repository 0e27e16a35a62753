"""What an event loop waits for while a thread works. Imported when a loop first does, as asyncio is."""

from __future__ import annotations

import asyncio
from typing import Any, TypeVar

T = TypeVar("T")


class Steadfast(asyncio.Future[T]):
    """A future that cannot be cancelled: a task that is, while it waits, learns it when this is done.

    It does what `asyncio.shield` and a second wait would do, in two turns of the loop less.

    >>> async def example():
    ...     async def work():
    ...         try:
    ...             await done
    ...         finally:
    ...             print("ended when that was", done.result())
    ...     done = Steadfast()
    ...     task = asyncio.create_task(work())
    ...     await asyncio.sleep(0)
    ...     task.cancel()
    ...     await asyncio.sleep(0.01)
    ...     done.set_result("done")
    ...     await asyncio.wait([task])
    ...     return task.cancelled()
    >>> asyncio.run(example())
    ended when that was done
    True
    """

    def cancel(self, msg: Any | None = None) -> bool:
        """Refuse."""
        return False
