"""CPU time that a budget adds to a request: a reservation of money, and its settlement.

Run: python benchmarks/budgets.py
"""

from __future__ import annotations

import asyncio
import multiprocessing
import tempfile
import time
from decimal import Decimal
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier
from pathlib import Path

from llm_provider import Budget, Client
from llm_provider._core.journey.chat import CHAT
from llm_provider._core.journey.reservation import worst_case
from llm_provider._core.money.pricing import PriceTable
from llm_provider._core.pace.call_limits import UNBOUNDED
from llm_provider._core.requests.request import Request

REPEATS = 7
REQUESTS = 1000
PROCESSES = 8
"""Processes that share one file, without a pause between requests: a far higher load than that of calls."""


async def spend(budget: Budget, requests: int) -> float:
    """CPU time of one reservation and its settlement, in microseconds."""
    began = time.process_time()
    for _ in range(requests):
        reservation = await budget.reserve(Decimal("0.01"))
        reservation.settle(Decimal("0.0000125"))
    return (time.process_time() - began) / requests * 1e6


def work(path: Path, start: Barrier, pipe: Connection) -> None:
    """One of the processes."""
    budget = Budget(1000, path=path)
    start.wait()
    pipe.send(asyncio.run(spend(budget, REQUESTS)))


def crowd(path: Path) -> tuple[float, float]:
    """CPU time of a reservation while many processes share a file, and their requests a second together."""
    context = multiprocessing.get_context("spawn")
    start = context.Barrier(PROCESSES + 1)
    pipes = [context.Pipe(duplex=False) for _ in range(PROCESSES)]
    processes = [context.Process(target=work, args=(path, start, sending)) for _, sending in pipes]
    for process in processes:
        process.start()
    start.wait()
    began = time.perf_counter()
    found = [receiving.recv() for receiving, _ in pipes]
    took = time.perf_counter() - began
    for process in processes:
        process.join()
    return sum(found) / len(found), PROCESSES * REQUESTS / took


def bound() -> float:
    """CPU time of the computation of a request's worst-case price, in microseconds."""
    table = PriceTable.load()
    engine = Client(cache="off")._engine  # noqa: SLF001 -- the engine has no public name
    call = engine.prepare(CHAT, Request.build("gpt-6.1-sol", "Hi", {"max_tokens": 100}), UNBOUNDED)
    best = float("inf")
    for _ in range(REPEATS):
        began = time.process_time()
        for _ in range(REQUESTS):
            worst_case(call, range(1), table)
        best = min(best, (time.process_time() - began) / REQUESTS * 1e6)
    return best


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        budgets = {"in memory": Budget(1000), "in a file": Budget(1000, path=Path(directory) / "alone")}
        best = dict.fromkeys(budgets, float("inf"))
        for _ in range(REPEATS):
            # Interleaved, so that a busy machine affects all alike.
            for name, budget in budgets.items():
                best[name] = min(best[name], asyncio.run(spend(budget, REQUESTS)))
        print(f"worst-case price: {bound():.1f} µs of CPU time a request")
        for name, time_taken in best.items():
            print(f"{name}: {time_taken:.1f} µs")
        shared, rate = crowd(Path(directory) / "shared")
        print(f"in a file shared by {PROCESSES} processes: {shared:.1f} µs, {rate:,.0f} requests a second")


if __name__ == "__main__":
    main()
