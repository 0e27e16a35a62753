"""A future that a task can await, but not cancel. Imported, like asyncio, when an event loop needs one."""

import asyncio
from typing import TypeVar

T = TypeVar("T")


class UncancellableFuture(asyncio.Future[T]):
    """A future that cannot be cancelled: a task that awaits it is cancelled once the future is done.

    `asyncio.shield` and a second wait would do the same in two more iterations of the event loop.
    """

    def cancel(self, msg: object = None) -> bool:
        return False
