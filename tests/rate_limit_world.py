"""Small worlds in simulated time: an endless backlog of requests against a limit."""

import heapq
import math
import random
import sys
from collections.abc import Callable
from typing import TypeAlias

from llm_provider._core.pace.controller import AdaptiveController
from llm_provider._core.pace.headers import Headroom
from llm_provider._core.pace.state import Ticket

Limit: TypeAlias = Callable[[float, int], float]
"""Seconds to wait until a request is admitted, of the time and of how many are being served; 0 admits it."""


MANY = sys.maxsize
"""Of requests in flight: no bound."""


def bucket(rate: float, capacity: float) -> Limit:
    level, at = capacity, 0.0

    def admit(now: float, serving: int) -> float:
        nonlocal level, at
        level, at = min(capacity, level + (now - at) * rate), now
        if level < 1 - 1e-9:
            return (1 - level) / rate
        level -= 1
        return 0.0

    return admit


def run(
    limit: Limit,
    seconds: float,
    *,
    processes: int = 1,
    latency: float = 1.0,
    headers: Callable[[float], Headroom] | None = None,
    retry_after: bool = True,
    make: Callable[[random.Random], AdaptiveController] = lambda source: AdaptiveController(
        random_source=source
    ),
) -> tuple[list[AdaptiveController], list[int], int]:
    """An endless backlog against a limit: the controllers, requests served by each, and refusals."""
    chance = random.Random(1)
    controllers = [make(random.Random(number)) for number in range(processes)]
    served, refused, serving = [0] * processes, 0, 0
    events: list[tuple[float, int, int, Ticket | None, float, Headroom | None]] = []
    for number in range(processes):
        heapq.heappush(events, (chance.random(), number, number, None, 0.0, None))
    sequence, timers = processes, [0.0] * processes
    while events and events[0][0] < seconds:
        now, _, number, ticket, wait, headroom = heapq.heappop(events)
        controller = controllers[number]
        if ticket is not None and wait:
            refused += 1
            controller.record_refusal(now, ticket, wait if retry_after else None, headroom)
        elif ticket is not None:
            serving -= 1
            served[number] += 1
            controller.record_success(now, ticket, headroom)
        while (ready := controller.ready_at(now, 1.0, MANY, 0)) <= now:
            sent = controller.record_request(now, 1.0, 0)
            wait = limit(now, serving)
            serving += not wait
            took = 0.05 if wait else latency * chance.uniform(0.7, 1.3)
            sequence += 1
            headroom = headers(now) if headers else None
            heapq.heappush(events, (now + took, sequence, number, sent, wait, headroom))
        ready = max(ready, now + 0.001)
        if ready < math.inf and not now < timers[number] <= ready:
            sequence, timers[number] = sequence + 1, ready
            heapq.heappush(events, (ready, sequence, number, None, 0.0, None))
    return controllers, served, refused
