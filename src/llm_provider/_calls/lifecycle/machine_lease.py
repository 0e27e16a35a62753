"""Single flight across machines: a call waits while another machine sends the same request.

The lease lies in the second level of the cache (`SecondLevel(leases=True)`) and ends by itself when its
machine fails. It is released once the answer is in the second level, where the waiting machines find it.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable

from ..._cache.response_cache import ResponseCache
from ..._cache.second_level.two_level_cache import TwoLevelCache
from ..call import Sample

_PAUSES = (0.05, 2.0)
"""Shortest and longest pause, in seconds, between two looks at a lease of another machine."""


async def deliver_once(
    cache: ResponseCache,
    key: str,
    find: Callable[[], Awaitable[list[Sample] | None]],
    deliver: Callable[[], Awaitable[list[Sample]]],
) -> list[Sample]:
    """The answer of another machine that sends the same request, else that of the provider.

    `find` looks for the answer in the cache, and `deliver` gets it from the provider and stores it.
    """
    assert isinstance(cache, TwoLevelCache)
    name = hashlib.sha256(key.encode()).hexdigest()
    pause, longest = _PAUSES
    waited = False
    while not await _take_lease(cache, name):
        waited = True
        await asyncio.sleep(pause)
        pause = min(2 * pause, longest)
        stored = await find()
        if stored is not None:
            return stored
    try:
        # The other machine may have finished between the last look and the lease.
        stored = await find() if waited else None
        return await deliver() if stored is None else stored
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
