"""Single flight across machines: a call waits while another machine sends the same request.

The lease lies in the second level of the cache (`SecondLevel(leases=True)`) and ends by itself when its
machine fails. It is released once the answer is in the second level, where the waiting machines find it.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from typing import Any, Protocol

from .._cache.response_cache import ResponseCache
from .._cache.second_level.two_level_cache import TwoLevelCache
from .call import Call, Sample

_PAUSES = (0.05, 2.0)
"""Shortest and longest pause, in seconds, between two looks at a lease of another machine."""


class Delivering(Protocol):
    """The part of the engine that this module needs."""

    cache: ResponseCache

    async def all_stored(self, call: Call[Any], parts: Sequence[int]) -> list[Sample] | None:
        """All parts from the cache; None if one of them is not stored."""

    async def deliver(self, call: Call[Any], parts: Sequence[int]) -> list[Sample]:
        """Get parts from the provider, and store them."""


async def once(engine: Delivering, call: Call[Any], parts: Sequence[int], key: str) -> list[Sample]:
    """The answer of another machine that sends the same request, else that of the provider.

    Args:
        engine: The engine of the client, whose cache has leases.
        call: The call.
        parts: The parts that one request asks for.
        key: Calls with equal keys share a request.
    """
    cache = engine.cache
    assert isinstance(cache, TwoLevelCache)
    name = hashlib.sha256(key.encode()).hexdigest()
    pause, longest = _PAUSES
    waited = False
    while not await _taken(cache, name):
        waited = True
        await asyncio.sleep(pause)
        pause = min(2 * pause, longest)
        found = await engine.all_stored(call, parts)
        if found is not None:
            return found
    try:
        # The other machine may have finished between the last look and the lease.
        found = await engine.all_stored(call, parts) if waited else None
        return await engine.deliver(call, parts) if found is None else found
    finally:
        cache.release_lease(name)


async def _taken(cache: TwoLevelCache, name: str) -> bool:
    taking = cache.take_lease(name)
    try:
        return await asyncio.wrap_future(taking)
    except asyncio.CancelledError:
        # The reader's thread may take it all the same.
        taking.add_done_callback(lambda _: cache.release_lease(name))
        raise
