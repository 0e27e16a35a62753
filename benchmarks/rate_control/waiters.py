"""CPU time of waiting for a slot in a scope, compared with `asyncio.Semaphore`.

    python -m benchmarks.rate_control.waiters [--waiters 10000] [--rounds 7] [--write]

So many tasks acquire a slot at once. 64 may hold one, and each releases it one event-loop iteration later.
The CPU time of the same tasks without slots is subtracted. The figures are medians of interleaved rounds.
`--write` puts the table into benchmarks/results/rate_control_waiters.md.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable

from llm_provider._core.pace.aimd import AIMD
from llm_provider._core.pace.controller import AdaptiveController
from llm_provider._core.pace.scopes import Controller, Scope

from .. import report

HOLDERS = 64


async def _all(one: Callable[[], Awaitable[None]], waiters: int) -> None:
    await asyncio.gather(*(one() for _ in range(waiters)))


async def nothing(waiters: int) -> None:
    """The tasks alone."""

    async def one() -> None:
        await asyncio.sleep(0)

    await _all(one, waiters)


async def semaphore(waiters: int) -> None:
    """The semaphore of the standard library."""
    slots = asyncio.Semaphore(HOLDERS)

    async def one() -> None:
        await slots.acquire()
        await asyncio.sleep(0)
        slots.release()

    await _all(one, waiters)


async def scope(make: Callable[[], Controller], waiters: int) -> None:
    """Our scope, with a controller."""
    slots = Scope(make())

    async def one() -> None:
        ticket = await slots.acquire(HOLDERS)
        await asyncio.sleep(0)
        slots.record_end(ticket, None)

    await _all(one, waiters)


def main() -> None:
    """Measure, print, and write the table if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--waiters", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--write", action="store_true", help="write the result")
    arguments = parser.parse_args()
    kinds: dict[str, Callable[[int], Awaitable[None]]] = {
        "nothing": nothing,
        "asyncio.Semaphore": semaphore,
        "adaptive": lambda waiters: scope(AdaptiveController, waiters),
        "aimd": lambda waiters: scope(AIMD, waiters),
    }
    times: dict[str, list[float]] = {name: [] for name in kinds}
    for _ in range(arguments.rounds):
        for name, run in kinds.items():
            started = time.process_time()
            asyncio.run(_finish(run(arguments.waiters)))
            times[name].append((time.process_time() - started) / arguments.waiters * 1e6)
    bare = statistics.median(times.pop("nothing"))
    slot_times = {name: statistics.median(values) - bare for name, values in times.items()}
    base = slot_times["asyncio.Semaphore"]
    lines = ["| | µs of CPU for acquire and release | of the semaphore's |", "|---|---|---|"]
    lines += [f"| {name} | {each:.1f} | {each / base:.1f} |" for name, each in slot_times.items()]
    print("\n".join(lines))
    if arguments.write:
        text = f"{arguments.waiters:,} tasks acquire at once, {HOLDERS} may hold."
        report.write_lines("rate_control_waiters", "Waiting for a slot", "rate_control.waiters", text, lines)


async def _finish(work: Awaitable[None]) -> None:
    await work


if __name__ == "__main__":
    main()
