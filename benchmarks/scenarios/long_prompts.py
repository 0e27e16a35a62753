"""Prompts of 100,000 tokens, 64 at a time: CPU per MB, of hashing and sending them; stalls; memory.

The floor hashes each request by SHA-256 and sends it with raw aiohttp. Each program is a process of its
own. Its imports and its first call come before the clock starts. The server throws requests away. A stall is
the processor time that the process used between two turns of a task, so other programs do not add to it.
"""

from __future__ import annotations

import importlib.metadata
import json
import subprocess
import sys
from statistics import median

from ..report import Result, Table
from . import Options
from .stalls import server

TOKENS = 100_000
CONCURRENCY = 64
CALLS = 256
COMMON = """
import asyncio, json, os, resource, sys, tempfile, time

url, calls = sys.argv[1], int(sys.argv[2])
WORDS = " ".join(f"word{number % 97}" for number in range(TOKENS * 2 // 3))
MB = len(WORDS) / 1e6

async def measure(ask):
    await ask("warm")
    longest = [0.0]
    async def beat():
        last = time.process_time()
        while True:
            await asyncio.sleep(0.001)
            now = time.process_time()
            longest[0], last = max(longest[0], now - last), now
    turn = asyncio.Semaphore(CONCURRENCY)
    async def one(number):
        async with turn:
            await ask(f"{number} {WORDS}")
    pulse = start(beat())
    before, begun = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    await asyncio.gather(*(one(number) for number in range(calls)))
    cpu = time.process_time() - begun
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps([cpu * 1e3 / calls / MB, longest[0] * 1e3, (after - before) / 1024]))
    os._exit(0)
"""
FLOOR = """
import aiohttp, hashlib
start = asyncio.ensure_future

async def main():
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        async def ask(prompt):
            messages = [{"role": "user", "content": prompt}]
            body = json.dumps({"model": "gpt-5.5", "messages": messages}).encode()
            hashlib.sha256(body).digest()
            async with session.post(url + "/chat/completions", data=body) as response:
                json.loads(await response.read())
        await measure(ask)
"""
OURS = """
from llm_provider import Client
from llm_provider._core.runtime import event_loop
start = event_loop.submit

async def main():
    with tempfile.TemporaryDirectory() as directory:
        client = Client(cache_dir=directory, keys={"openai": "key"}, max_concurrent=CONCURRENCY, **SETTINGS)
        async def ask(prompt):
            await client.acall("gpt-5.5", prompt, base_url=url, reasoning_effort="none")
        await measure(ask)
"""
PROGRAMS = {
    "hashing and sending, raw aiohttp": FLOOR,
    "this library": OURS.replace("**SETTINGS", ""),
    "this library, cache off": OURS.replace("**SETTINGS", 'cache="off"'),
}


def run(options: Options) -> Result:
    """Run every program in turn, round after round."""
    rounds = options.rounds_or(10)
    constants = f"TOKENS, CONCURRENCY = {TOKENS}, {CONCURRENCY}\n"
    taken: dict[str, list[list[float]]] = {name: [] for name in PROGRAMS}
    with server() as port:
        url = f"http://127.0.0.1:{port}/short/1"
        for _ in range(rounds):
            for name, program in PROGRAMS.items():
                code = f"{constants}{COMMON}{program}\nasyncio.run(main())"
                command = [sys.executable, "-c", code, url, str(options.count(CALLS))]
                done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
                taken[name].append(json.loads(done.stdout))
    floor, ours = (taken[name] for name in list(PROGRAMS)[:2])
    figures = {name: [median(one) for one in zip(*found, strict=True)] for name, found in taken.items()}
    ratios = {
        name: [one[0] / other[0] for one, other in zip(found, floor, strict=True)]
        for name, found in taken.items()
    }
    return Result(
        title="Long prompts",
        text=f"{options.count(CALLS)} different prompts of some {TOKENS:,} tokens each, {CONCURRENCY} at a "
        "time, to a server without TLS that answers at once. The ratio is the median of the rounds' own, "
        "with the lowest and the highest.",
        tables=[
            Table(
                title="",
                columns=[
                    "program",
                    "CPU ms per MB",
                    "of the floor",
                    "from",
                    "to",
                    "longest stall ms",
                    "more RSS MB",
                ],
                rows=[
                    [name, cpu, median(ratios[name]), min(ratios[name]), max(ratios[name]), stall, memory]
                    for name, (cpu, stall, memory) in figures.items()
                ],
            )
        ],
        measured={
            "long_of_floor": median(ratios["this library"]),
            "long_stall": median(one[1] for one in ours),
            "long_memory": median(one[2] for one in ours),
        },
        versions={
            "ours": {name: importlib.metadata.version(name) for name in ("aiohttp", "openai", "orjson")}
        },
        rounds=rounds,
    )
