"""CPU time that single flight adds to a call, and of the locks behind its leases: the best of seven runs.

Run: python benchmarks/leases.py
"""

from __future__ import annotations

import asyncio
import fcntl
import multiprocessing
import os
import sqlite3
import tempfile
import time
from collections.abc import Callable
from multiprocessing.synchronize import Event
from pathlib import Path

from llm_provider._core.events.events import Waits
from llm_provider._core.journey.sent_requests import SentRequests
from llm_provider._core.journey.single_flight import Flights
from llm_provider._core.runtime.leases import Leases

REPEATS = 7
CALLS = 4000


def microseconds(function: Callable[[int], object], times: int = 1000) -> float:
    """CPU time of one call of `function` in microseconds; each call gets a number of its own."""
    best, number = float("inf"), 0
    for _ in range(REPEATS):
        began = time.process_time()
        for _ in range(times):
            number += 1
            function(number)
        best = min(best, (time.process_time() - began) / times * 1e6)
    return best


async def ask() -> int:
    """A request that is answered in the next event-loop iteration."""
    await asyncio.sleep(0)
    return 1


async def of_flights(flights: Flights[int] | None, width: int, keys: str) -> float:
    """CPU time of one uncontended call in microseconds, with `width` in flight; None for the call alone."""

    async def worker(worker: int) -> None:
        for number in range(CALLS // width):
            if flights is None:
                await ask()
                continue
            with flights.lead([f"{keys}-{worker}-{number}"], SentRequests(), 0.0) as flight:
                flight.result = await ask()

    began = time.process_time()
    await asyncio.gather(*(worker(number) for number in range(width)))
    return (time.process_time() - began) / CALLS * 1e6


async def calls(directory: Path) -> None:
    """Print the CPU time that sharing adds to a call, within one process and with leases."""
    for width in (1, 32, 256):
        # Interleaved, so that a busy machine affects all alike.
        ways = {
            "alone": None,
            "in process": Flights[int](Leases(None), Waits(show=False)),
            "leases": Flights[int](Leases(directory), Waits(show=False)),
        }
        best = dict.fromkeys(ways, float("inf"))
        for repeat in range(REPEATS):
            for way, flights in ways.items():
                best[way] = min(best[way], await of_flights(flights, width, f"{width}-{repeat}"))
        added = "  ".join(f"{way} +{best[way] - best['alone']:.1f}" for way in list(ways)[1:])
        print(f"{width:>4} calls in flight: {added} µs per call")


def hold(path: Path, count: int, ready: Event, end: Event) -> None:
    """Hold many locks until the event `end` is set."""
    with path.open("r+b") as file:
        for number in range(count):
            # The kernel would merge adjacent ranges into one lock.
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 2 * number)
        ready.set()
        end.wait()


def locks(path: Path) -> None:
    """Print the CPU time of a lock while another process holds many locks of the same file."""
    path.touch()
    descriptor = os.open(path, os.O_RDWR)

    def pair(number: int) -> None:
        position = 1 << 40 | number
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, position)
        fcntl.lockf(descriptor, fcntl.LOCK_UN, 1, position)

    for held in (0, 1000, 8000):
        ready, end = multiprocessing.Event(), multiprocessing.Event()
        process = multiprocessing.Process(target=hold, args=(path, held, ready, end))
        process.start()
        ready.wait()
        print(f"{held:>5} locks of the file held: {microseconds(pair):.1f} µs to take and release one")
        end.set()
        process.join()
    os.close(descriptor)


def rows(path: Path) -> None:
    """Print the CPU time of the same lease as a row of a SQLite table that no other process writes."""
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = OFF")
    database.execute("CREATE TABLE lease (name TEXT PRIMARY KEY, owner INT, beat REAL) WITHOUT ROWID")

    def pair(number: int) -> None:
        name = f"{number:064}"
        database.execute("INSERT OR IGNORE INTO lease VALUES (?, 1, 0.0)", (name,))
        database.execute("DELETE FROM lease WHERE name = ? AND owner = 1", (name,))

    print(f"a row of SQLite: {microseconds(pair, 300):.1f} µs to insert and delete")
    database.close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(calls(Path(folder) / "leases"))
        locks(Path(folder) / "file")
        rows(Path(folder) / "rows.db")
