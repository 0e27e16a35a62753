"""The mutable objects of a client that belong to one event loop: its flights and its delivery."""

from __future__ import annotations

import asyncio
from typing import Protocol

from .._cache.response_cache import ResponseCache
from .._runtime.leases import Leases
from .._settings import Settings
from .._telemetry.waits import Waits
from .call import Sample
from .delivery import Delivery
from .recorder import CostRecorder
from .sender import Sender
from .single_flight import Flights


class Closeable(Protocol):
    """An object with connections."""

    async def close(self) -> None:
        """Close them."""


class LoopState:
    """The flights and the delivery of a client, made on the loop by the first call that is sent."""

    __slots__ = ("batches", "delivery", "flights", "loop")

    def __init__(
        self, settings: Settings, cache: ResponseCache, recorder: CostRecorder, waits: Waits
    ) -> None:
        self.loop = asyncio.get_running_loop()
        directory = cache.lease_directory
        self.flights: Flights[list[Sample]] = Flights(Leases(directory), waits)
        self.delivery: Delivery = Sender(settings, recorder, directory, waits)
        self.batches: Closeable | None = None
        """The batch delivery, made by the first job that uses it."""

    def is_current(self) -> bool:
        """Whether its loop is the running one."""
        return self.loop is asyncio.get_running_loop()

    async def close(self) -> None:
        """Close every connection, on the loop."""
        self.flights.close()
        await self.delivery.close()
        if self.batches is not None:
            await self.batches.close()
