"""The mutable objects of a client that belong to one event loop: its flights, its sender, its batches."""

from collections.abc import Awaitable, Callable
from typing import Any

from ..events.waits import Waits
from ..runtime.event_loop import inbox_here
from ..runtime.leases import Leases
from ..settings import Settings
from ..store.response_cache import ResponseCache
from .call import Sample
from .recorder import CostRecorder
from .sender import Sender
from .single_flight import Flights


class LoopState:
    """The flights and the sender of a client, made on the loop by the first call that is sent."""

    def __init__(
        self, settings: Settings, cache: ResponseCache, recorder: CostRecorder, waits: Waits
    ) -> None:
        self.inbox = inbox_here()
        directory = cache.lease_directory
        self.flights: Flights[dict[str, Sample]] = Flights(Leases(directory), waits)
        self.sender = Sender(settings, recorder, directory, waits)
        self.batches: object = None
        """The batch delivery, made by the first job that uses it."""
        self.remembered: Any = None
        """The memory of the operation `score`, made by its first call."""
        self.to_close: list[Callable[[], Awaitable[None]]] = []
        """Closes what others made for this loop."""

    async def close(self) -> None:
        self.flights.leases.close()
        await self.sender.close()
        for close in self.to_close:
            await close()
