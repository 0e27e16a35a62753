"""The cache: hits against the bare FanoutCache, event-loop lag, opening, hashing, 10,000 cached prompts."""

from __future__ import annotations

import asyncio
import importlib.metadata
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import diskcache
import orjson

from llm_provider import Client
from llm_provider._core.runtime import event_loop
from llm_provider._core.runtime.json_pieces import canonical
from llm_provider._core.store.entry import cache_key
from llm_provider._core.store.response_cache import Entry, Question, ResponseCache
from llm_provider.simulator import Simulator

from ..environments import variables
from ..report import Result, Table
from . import Options

ENTRIES = 2000
TASKS = 64
PROMPTS = 10_000
MEDIA_BYTES = 5_000_000
MODEL = "gpt-6.1-sol"
FACTS = {
    "provider": "openai",
    "base_url": "https://api.openai.com/v1",
    "operation": "chat/completions",
    "headers": {},
    "draw": 0,
}
ANSWER = "y" * 2000
REPLY = orjson.dumps({"choices": [{"message": {"content": ANSWER, "role": "assistant"}}]})

OPENED = {
    "FanoutCache: import, open, one get": "from diskcache import FanoutCache as F; F(path).get('key')",
    "FanoutCache: import, make, one set": "from diskcache import FanoutCache as F; F(new).set('key', b'')",
    "ours: open, one get": "ResponseCache(path).get('key')",
    "ours: make, one put": "ResponseCache(new).put('key', Entry(b'', 1.0, 2.0)).result()",
}
TIMED = """
import sys, time
path, new = sys.argv[1:]
if {ours}:
    from llm_provider._core.store.response_cache import Entry, ResponseCache
started = time.perf_counter()
{program}
print((time.perf_counter() - started) * 1e3)
"""
RERUN = """
import sys
from llm_provider import Client
with Client(cache="only") as client:
    prompts = (f"Question {number}: " + "x" * 1000 for number in range(int(sys.argv[1])))
    answers = client.call_many("gpt-6.1-sol", prompts, on_error="raise", progress=False)
    assert all(answer.cached for answer in answers), "not cached"
assert not {"openai", "httpx", "aiohttp"} & set(sys.modules), "an SDK was imported"
"""


def run(options: Options) -> Result:
    """Measure and compare."""
    rounds, count = options.rounds_or(5), options.count(ENTRIES)
    with tempfile.TemporaryDirectory() as directory:
        filled = Path(directory)
        keys = _fill(filled, count)
        hits = _hits(filled, keys, rounds)
        lags = _lags(filled, keys, rounds)
        opened = _opened(filled, rounds)
        with Simulator(answer=ANSWER) as simulator, variables(simulator.environment()):
            rerun = _rerun(filled / "rerun", options.count(PROMPTS))
            public, lags["`acall` (public)"] = _public_hits(filled / "rerun", options.count(ENTRIES), rounds)
    hashing = _hashing(rounds)
    ours, floor = hits["ours: get, decode"], hits["FanoutCache: get, json.loads"]
    return Result(
        title="The cache",
        text="Prompts have 1 kB and answers 2 kB. The bare FanoutCache(shards=8) holds the same replies. CPU "
        "is that of the process with all its threads. Opening and the rerun are measured as whole processes.",
        tables=[
            Table(
                title="One hit, in one thread",
                columns=("what", "CPU µs", "hits a CPU second"),
                rows=[(name, value, 1e6 / value) for name, value in hits.items()],
            ),
            Table(
                title="One hit, from the arguments to the `Response`, in one thread",
                columns=("what", "CPU µs", "hits a CPU second"),
                rows=[(name, value, 1e6 / value) for name, value in public.items()],
            ),
            Table(
                title=f"{TASKS} tasks that read hits without a pause",
                columns=("read by", "hits/s", "CPU µs per hit", "loop lag p50 ms", "loop lag p99 ms"),
                rows=[(name, *values) for name, values in lags.items()],
            ),
            Table(
                title="First use, in a new process that has imported the package",
                columns=("what", "ms"),
                rows=list(opened.items()),
            ),
            Table(
                title="Large work",
                columns=("what", "value", ""),
                rows=[
                    ("canonical JSON and key of a 5 MB media message", hashing, "MB/s"),
                    (
                        f"rerun of {options.count(PROMPTS):,} cached prompts, whole process: wall",
                        rerun[0],
                        "s",
                    ),
                    ("the same, CPU", rerun[1], "s"),
                ],
            ),
        ],
        measured={
            "hit_of_floor": ours / floor,
            "hits": 1e6 / public["`call`"],
            "many_hits": 1e6 / public["`call_many`"],
            "loop_hits": lags["one thread, batched (ours)"][0],
            "loop_lag": lags["`acall` (public)"][3],
            "hashing": hashing,
            "first_open": opened["ours: open, one get"],
            "first_make": opened["ours: make, one put"],
            "rerun": rerun[0],
        },
        versions={"ours": {name: importlib.metadata.version(name) for name in ("diskcache", "orjson")}},
        rounds=rounds,
    )


def _body(number: int) -> bytes:
    return canonical({"model": MODEL, "messages": [{"role": "user", "content": "x" * 1000 + str(number)}]})


def _fill(directory: Path, count: int) -> list[str]:
    keys = []
    with closing(ResponseCache(directory)) as cache:
        for number in range(count):
            body = _body(number)
            keys.append(cache_key(body=body, **FACTS))
            cache.put(keys[-1], Entry(REPLY, 0.5, 1.79e9, MODEL, Question(body=body, model=MODEL, **FACTS)))
    bare = diskcache.FanoutCache(str(directory / "bare"), shards=8, eviction_policy="none", cull_limit=0)
    for key in keys:
        bare[key] = REPLY
    bare.close()
    return keys


def _hits(directory: Path, keys: list[str], rounds: int) -> dict[str, float]:
    """CPU µs of one hit, by operation."""
    with (
        closing(ResponseCache(directory)) as cache,
        diskcache.FanoutCache(str(directory / "bare"), shards=8) as bare,
    ):

        def decoded() -> None:
            for key in keys:
                entry = cache.get(key)
                assert entry is not None
                orjson.loads(entry.body)

        ways: dict[str, Callable[[], object]] = {
            "FanoutCache: get": lambda: [bare.get(key) for key in keys],
            "FanoutCache: get, json.loads": lambda: [json.loads(bare.get(key)) for key in keys],
            "ours: get": lambda: [cache.get(key) for key in keys],
            "ours: get, decode": decoded,
        }
        taken: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(rounds + 1):
            for name, way in ways.items():
                started = time.process_time()
                way()
                taken[name].append((time.process_time() - started) / len(keys) * 1e6)
    # The first round opens files, and is not counted.
    return {name: statistics.median(values[1:]) for name, values in taken.items()}


def _lags(directory: Path, keys: list[str], rounds: int) -> dict[str, tuple[float, float, float, float]]:
    """Hits a second, CPU µs per hit, and the lag of the event loop, p50 and p99 in ms."""
    with closing(ResponseCache(directory)) as cache:

        async def in_the_loop(key: str) -> None:
            assert cache.get(key)
            await asyncio.sleep(0)

        async def in_threads(key: str) -> None:
            assert await asyncio.to_thread(cache.get, key)

        async def batched(key: str) -> None:
            assert await cache.get_soon(key, event_loop.inbox_here())

        ways = {
            "the loop itself": in_the_loop,
            "`to_thread`": in_threads,
            "one thread, batched (ours)": batched,
        }
        taken: dict[str, list[tuple[float, float, float, float]]] = {name: [] for name in ways}
        for _ in range(rounds):
            for name, way in ways.items():
                taken[name].append(asyncio.run(_flat_out(way, keys)))
    return {name: tuple(map(statistics.median, zip(*values, strict=True))) for name, values in taken.items()}


async def _flat_out(way: Callable[..., object], keys: list[str]) -> tuple[float, float, float, float]:
    lags: list[float] = []

    async def watch() -> None:
        while True:
            started = time.perf_counter()
            await asyncio.sleep(0.001)
            lags.append(time.perf_counter() - started - 0.001)

    async def hit(offset: int) -> None:
        for position in range(len(keys) // 2):
            await way(keys[(offset + position) % len(keys)])

    watching = asyncio.create_task(watch())
    wall, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*(hit(31 * number) for number in range(TASKS)))
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    watching.cancel()
    count = TASKS * (len(keys) // 2)
    quantiles = statistics.quantiles(lags or [0.0, 0.0], n=100)
    return count / wall, cpu / count * 1e6, quantiles[49] * 1e3, quantiles[98] * 1e3


def _opened(directory: Path, rounds: int) -> dict[str, float]:
    """Milliseconds, by operation."""
    taken: dict[str, list[float]] = {name: [] for name in OPENED}
    for _ in range(3 * rounds):
        for name, program in OPENED.items():
            ours = name.startswith("ours")
            code = TIMED.format(ours=ours, program=program)
            with tempfile.TemporaryDirectory() as new:
                path = directory if ours else directory / "bare"
                command = [sys.executable, "-c", code, str(path), str(Path(new) / "made")]
                shown = subprocess.run(
                    command, env=_plain_environment(), check=True, capture_output=True, text=True
                )
            taken[name].append(float(shown.stdout))
    return {name: statistics.median(values) for name, values in taken.items()}


def _hashing(rounds: int) -> float:
    """Megabytes a second."""
    media = "data:image/png;base64," + "A" * MEDIA_BYTES
    payload = {"model": MODEL, "messages": [{"role": "user", "content": [{"image_url": {"url": media}}]}]}
    rates = []
    for _ in range(4 * rounds):
        started = time.process_time()
        cache_key(body=canonical(payload), **FACTS)
        rates.append(MEDIA_BYTES / 1e6 / (time.process_time() - started))
    return statistics.median(rates)


def _prompts(count: int) -> list[str]:
    return [f"Question {number}: " + "x" * 1000 for number in range(count)]


def _public_hits(
    directory: Path, count: int, rounds: int
) -> tuple[dict[str, float], tuple[float, float, float, float]]:
    """CPU µs of a hit through the public functions, and the loop lag of 64 tasks."""
    prompts = _prompts(count)
    with Client(cache_dir=directory, cache="only") as client:
        ways: dict[str, Callable[[], object]] = {
            "`call`": lambda: [client.call(MODEL, prompt) for prompt in prompts],
            "`call_many`": lambda: client.call_many(MODEL, prompts, progress=False),
        }
        taken: dict[str, list[float]] = {name: [] for name in ways}
        lags = []
        for _ in range(rounds + 1):
            for name, way in ways.items():
                started = time.process_time()
                way()
                taken[name].append((time.process_time() - started) / count * 1e6)
            lags.append(asyncio.run(_flat_out(lambda prompt: client.acall(MODEL, prompt), prompts[:200])))
    lag = tuple(map(statistics.median, zip(*lags, strict=True)))
    return {name: statistics.median(values[1:]) for name, values in taken.items()}, lag


def _rerun(directory: Path, count: int) -> tuple[float, float]:
    """Wall and CPU seconds of a process whose answers are all in the cache, without API keys."""
    with Client(cache_dir=directory, max_concurrent=128) as client:
        client.call_many(MODEL, _prompts(count), on_error="raise", progress=False)
    taken = []
    for _ in range(3):
        started, before = time.perf_counter(), os.times()
        subprocess.run(
            [sys.executable, "-c", RERUN, str(count)],
            env={**_plain_environment(), "LLM_PROVIDER_CACHE_DIR": str(directory)},
            check=True,
        )
        after = os.times()
        cpu = after.children_user + after.children_system - before.children_user - before.children_system
        taken.append((time.perf_counter() - started, cpu))
    return min(taken)


def _plain_environment() -> dict[str, str]:
    """The environment without API keys, in which Python keeps compiled modules."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.endswith("_API_KEY") and name != "PYTHONDONTWRITEBYTECODE"
    }
