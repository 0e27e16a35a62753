"""The network between the simulated processes and their providers: its faults, and its order."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .world import World


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """How the network misbehaves. Shares are fractions of the connections or messages, times are seconds."""

    delay: float = 0.0
    """The longest time that a message takes."""
    split: float = 0.0
    """Messages that arrive in several pieces."""
    refuse: float = 0.0
    """Connections that are refused."""
    cut_request: float = 0.0
    """Messages to a server instead of which the connection breaks, at both ends."""
    cut_answer: float = 0.0
    """Messages to a client after a part of which the connection breaks."""
    cut_end: float = 0.0
    """Streams at whose end the connection breaks, before or in the last bytes, which hold no event."""
    repeat: float = 0.0
    """Answers that arrive a second time, later."""
    end: float = 0.0
    """Answers after which the server ends the connection."""
    silent: float = 0.0
    """Answers after which the connection is dead, and neither end is told."""
    unnoticed: float = 0.0
    """Connections whose end at the client no provider notices: it answers, and bills, all the same."""


class Line:
    """One direction of a connection: what is sent arrives later, in order."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._latest = 0.0
        self._under_way: deque[tuple[Callable[..., object], tuple[Any, ...]]] = deque()

    def send(self, receive: Callable[..., object], *arguments: Any, longest: float | None = None) -> None:
        """Call a function after a delay, and after everything that was sent before."""
        world = self._world
        longest = world.faults.delay if longest is None else longest
        self._latest = max(self._latest, world.now + longest * world.random.random() ** 2)
        self._under_way.append((receive, arguments))
        asyncio.get_running_loop().call_at(self._latest, self._deliver)

    def _deliver(self) -> None:
        receive, arguments = self._under_way.popleft()
        receive(*arguments)
