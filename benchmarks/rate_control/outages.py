"""Calls through a `Scope` to a provider that fails for a while: an event loop with a clock of its own."""

from __future__ import annotations

import asyncio
import math
import random
import selectors
from collections.abc import Callable
from typing import Any, NamedTuple

from llm_provider._core.errors import APIConnectionError, InternalServerError, LLMError
from llm_provider._core.pace.call_limits import Patience
from llm_provider._core.pace.controller import AdaptiveController
from llm_provider._core.pace.failures import DEFAULT_MAX_RETRIES, is_congestion, is_outage, is_unbilled, judge
from llm_provider._core.pace.scopes import Scope


def _unreachable() -> LLMError:
    return APIConnectionError("refused", maybe_billed=False)


class Outage(NamedTuple):
    """A batch, and the share of its requests that fails from one time to another."""

    name: str
    calls: int
    at_once: int
    begins: float
    ends: float
    share: float = 1.0
    latency: float = 1.0
    failing_in: float = 0.05
    """Seconds after which a request fails."""
    error: Callable[[], LLMError] = lambda: InternalServerError("HTTP 500", status=500)
    workers_after: int | None = None
    """Requests at once that the provider serves for half a minute after the outage; more fail."""


class Figures(NamedTuple):
    """The result of a run: seconds until the last answer, requests, and calls that failed for good."""

    seconds: float
    requests: int
    lost: int


OUTAGES = (
    Outage("ten minutes, 100 at once", 3000, 100, 10.0, 610.0),
    Outage("ten minutes, 20 at once", 3000, 20, 30.0, 630.0),
    Outage("five seconds", 3000, 100, 3.0, 8.0, latency=0.2),
    Outage(
        "unreachable for a minute",
        1000,
        32,
        5.0,
        65.0,
        error=_unreachable,
    ),
    Outage("a restart: all in flight fail at once", 3000, 500, 2.0, 2.2, failing_in=0.01),
    Outage("half fails for two minutes", 3000, 50, 10.0, 130.0, share=0.5),
    Outage("slow answers, 30 % fail at once", 1000, 32, 0.0, math.inf, share=0.3, latency=5.0),
    Outage("ten workers when it is back", 3000, 100, 10.0, 40.0, workers_after=10),
    Outage("failures after 20 s", 1000, 64, 10.0, 130.0, failing_in=20.0),
)


class _Selector(selectors.SelectSelector):
    """Moves the clock instead of waiting."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        assert timeout is not None, "nothing will ever happen"
        self.now += timeout
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose time passes at once."""

    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)

    def time(self) -> float:
        return self._virtual.now


async def _run(outage: Outage, seed: int) -> Figures:
    loop, chance = asyncio.get_running_loop(), random.Random(seed)
    scope = Scope(AdaptiveController(random_source=random.Random(seed)))
    patience = Patience(3600.0, 0.0)
    requests = lost = served = 0

    async def call(number: int) -> None:
        nonlocal requests, lost, served
        failures = free = 0
        while True:
            try:
                ticket = await scope.acquire(
                    outage.at_once,
                    at_once=outage.at_once,
                    patience=patience,
                    first=bool(failures) and scope.outage.down_since is None,
                )
            except LLMError:
                lost += 1
                return
            requests += 1
            sent, takes = loop.time(), outage.latency * chance.uniform(0.8, 1.2)
            fails = chance.random() < outage.share and sent + takes > outage.begins and sent < outage.ends
            if outage.workers_after is not None and outage.ends <= sent < outage.ends + 30:
                fails = served >= outage.workers_after
            if fails:
                takes = max(outage.failing_in * chance.uniform(0.8, 1.2), outage.begins - sent)
            served += not fails
            await asyncio.sleep(takes)
            served -= not fails
            if not fails:
                scope.record_end(ticket, None)
                return
            error = outage.error()
            failures += 1
            alone = scope.record_end(ticket, error, caller=number) or not is_congestion(error)
            down = scope.outage.down_since is not None
            free += down and is_outage(error) and is_unbilled(error)
            verdict = judge(
                error,
                attempts=failures - free,
                max_retries=DEFAULT_MAX_RETRIES,
                random_source=chance,
                budget=scope.retries,
                now=loop.time(),
                down=down,
            )
            if not verdict.retry:
                lost += 1
                return
            if alone and verdict.delay:
                await asyncio.sleep(verdict.delay)

    waiting = iter(range(outage.calls))

    async def worker() -> None:
        for number in waiting:
            await call(number)

    await asyncio.gather(*(worker() for _ in range(outage.at_once)))
    return Figures(loop.time(), requests, lost)


def run(outage: Outage, seed: int) -> Figures:
    """One run."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(_run(outage, seed))
