"""The first 200 calls of a process: CPU per call, of that of its later calls.

Each process makes one call, which imports the SDK, and then 2,400 more in blocks of 200. The later calls are
the last eight blocks. A full garbage collection of the SDKs' objects falls into one of them or none.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import subprocess
import sys
from statistics import median

from llm_provider.simulator import Simulator

from ..provider import MODELS
from ..report import Cell, Result, Table
from . import Options

BLOCK = 200
PROGRAM = """
import asyncio, gc, json, sys, time
from llm_provider import Client

model, block = sys.argv[1], int(sys.argv[2])
full = []

def note(phase, facts):
    if facts["generation"] == 2 and phase == "stop":
        full.append(1)

gc.callbacks.append(note)

async def main():
    with Client(cache="off", max_concurrent=1000) as client:
        await client.acall(model, "first")
        turn, costs = asyncio.Semaphore(32), []
        async def one(number):
            async with turn:
                await client.acall(model, f"Question {number}")
        for start in range(0, 12 * block, block):
            full.clear()
            begun = time.process_time()
            await asyncio.gather(*(one(start + number) for number in range(block)))
            costs.append([(time.process_time() - begun) / block * 1e6, len(full)])
        print(json.dumps(costs))

asyncio.run(main())
"""


def run(options: Options) -> Result:
    """Start a process for each route in turn, round after round."""
    rounds = options.rounds_or(10)
    taken: dict[str, list[tuple[float, float, float]]] = {route: [] for route in MODELS}
    with Simulator(latency=0.02) as simulator:
        environment = {**os.environ, **simulator.environment()}
        for _ in range(rounds):
            for route, model in MODELS.items():
                command = [sys.executable, "-c", PROGRAM, model, str(options.count(BLOCK))]
                done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
                blocks: list[tuple[float, int]] = json.loads(done.stdout)
                taken[route].append((blocks[0][0], median(cost for cost, _ in blocks[4:]), blocks[0][1]))
    rows: list[list[Cell]] = []
    measured = {}
    for route, found in taken.items():
        ratios = [first / later for first, later, _ in found]
        measured[f"first_{route}"] = median(ratios)
        medians = [median(one) for one in zip(*found, strict=True)]
        rows.append([route, medians[0], medians[1], median(ratios), min(ratios), max(ratios), medians[2]])
    return Result(
        title="The first calls of a process",
        text="32 calls at a time, an answer after 20 ms, without TLS, cache off. The ratio is the median of "
        "the rounds' own, with the lowest and the highest.",
        tables=[
            Table(
                title="CPU µs per call",
                columns=[
                    "route",
                    "first 200",
                    "later",
                    "ratio",
                    "from",
                    "to",
                    "full collections in the first 200",
                ],
                rows=rows,
            )
        ],
        measured=measured,
        versions={
            "ours": {name: importlib.metadata.version(name) for name in ("aiohttp", "anthropic", "openai")}
        },
        rounds=rounds,
    )
