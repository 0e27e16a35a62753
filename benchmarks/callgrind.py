"""Exact counts of the machine instructions and allocations of a call, including C code, by valgrind.

Each case runs N times and 3N times. The difference of the two counts belongs to 2N calls, and contains no
share of the start, the warm-up or the count itself. Only the route of OpenAI is counted, because the import
of an SDK takes a minute under valgrind.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from llm_provider.simulator import Simulator

from . import hot_path

SDKS = ("openai", "aiohttp")
ROUTE = "acall, OpenAI"
CALLS = 20
"""N. Batches and streams run only a few times, because they take longer."""

SECONDS = 900.0
ALLOCATORS = ("_PyObject_Malloc", "_PyObject_Calloc")
"""The functions from which CPython gets every memory block, small or large."""


def available() -> bool:
    """Whether valgrind is installed."""
    return shutil.which("callgrind_control") is not None


def measured() -> dict[str, tuple[float, float]]:
    """Machine instructions and allocated blocks of one call of each case, in this interpreter's environment.

    Raises:
        CalledProcessError: valgrind, or the program below it, failed; its message is on standard error.
    """
    with tempfile.TemporaryDirectory() as directory:
        output = Path(directory, "counts")
        valgrind = ["valgrind", "--tool=callgrind", "--quiet", f"--callgrind-out-file={output}"]
        names = hot_path.run(
            *valgrind, sys.executable, "-m", "benchmarks.callgrind", seconds=SECONDS
        ).splitlines()
        dumps = [_read(Path(f"{output}.{number}")) for number in range(1, 3 * len(names) + 1)]
    counts = {}
    for number, line in enumerate(names):
        times, name = line.split(" ", 1)
        _, once, thrice = dumps[3 * number : 3 * number + 3]
        calls = 2 * int(times)
        counts[name] = ((thrice[0] - once[0]) / calls, (thrice[1] - once[1]) / calls)
    return counts


def _read(dump: Path) -> tuple[int, int]:
    """Instructions and allocations between two dumps."""
    instructions = allocations = 0
    names: dict[str, str] = {}
    callee = ""
    with dump.open(encoding="utf-8") as lines:
        for line in lines:
            if named := re.match(r"c?fn=(\(\d+\))(?: (.*))?$", line):
                number, name = named.groups()
                callee = names.setdefault(number, name)
            elif line.startswith("calls=") and callee in ALLOCATORS:
                allocations += int(line[6:].split()[0])
            elif line.startswith("totals:"):
                instructions = int(line.split()[1])
    return instructions, allocations


async def _count_all() -> Mapping[str, int]:
    done = {}
    with hot_path.cases() as made:
        for name, case in made.items():
            if name.startswith("acall, ") and name != ROUTE:
                continue
            times = max(1, CALLS // case.calls) if case.rounds >= CALLS // 2 else 3
            for rounds in (case.warm, times, 3 * times):
                for number in range(rounds):
                    await case.work(number)
                await asyncio.to_thread(_dump)
            done[name] = times * case.calls
    return done


def _dump() -> None:
    command = ["callgrind_control", "--dump", str(os.getpid())]
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)


def main() -> None:
    """Run under valgrind: print the number of calls N of each case, in the order of the dumps."""
    with Simulator() as simulator:
        hot_path.prepare(simulator, SDKS)
        for name, calls in asyncio.run(_count_all()).items():
            print(calls, name)


if __name__ == "__main__":
    main()
