"""Single flight across machines: a call waits while another machine sends the same request.

The lease lies in the second level of the cache (`SecondLevel(leases=True)`) and ends by itself when its
machine fails. It is released once the answer is in the second level, where the waiting machines find it.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from ..._cache.response_cache import ResponseCache
from ..._cache.second_level.two_level_cache import TwoLevelCache
from ..call import Call, Sample

_PAUSES = (0.05, 2.0)
"""Shortest and longest pause, in seconds, between two looks at a lease of another machine."""


async def deliver_once(
    cache: ResponseCache,
    call: Call[Any],
    parts: Sequence[int],
    find: Callable[[Call[Any], Sequence[int]], Awaitable[list[Sample] | None]],
    deliver: Callable[[Call[Any], Sequence[int]], Awaitable[list[Sample]]],
) -> list[Sample]:
    """The parts of a call that another machine has put into the cache, else delivered ones."""
    assert isinstance(cache, TwoLevelCache)
    name = hashlib.sha256("+".join(map(call.key, parts)).encode()).hexdigest()
    pause, longest = _PAUSES
    waited = False
    while not await _take_lease(cache, name):
        waited = True
        await asyncio.sleep(pause)
        pause = min(2 * pause, longest)
        stored = await find(call, parts)
        if stored is not None:
            return stored
    try:
        # The other machine may have finished between the last look and the lease.
        stored = await find(call, parts) if waited else None
        return await deliver(call, parts) if stored is None else stored
    finally:
        cache.release_lease(name)


async def _take_lease(cache: TwoLevelCache, name: str) -> bool:
    taking = cache.take_lease(name)
    try:
        return await asyncio.wrap_future(taking)
    except asyncio.CancelledError:
        # The reader's thread may take it all the same.
        taking.add_done_callback(lambda _: cache.release_lease(name))
        raise
