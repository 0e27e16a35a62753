"""Counts of the work of a call, which are the same on a busy machine and on a quiet one.

    python -m benchmarks.hot_path            # the counts of this interpreter's environment, as JSON
    python -m benchmarks.hot_path --routes   # instructions of each kind of call on each route

`PYTHONPATH=<checkout>/src` before either counts the library of another checkout.

The counts are per call, with the real SDKs over real sockets and the server in a separate process:

- *instructions*: bytecode instructions of all threads together, by package; those of the median call.
- *garbage*: objects that only the garbage collector can free.
- *blocks*: memory blocks that a call and its connection hold while the call waits for its answer.

`tests/benchmarks/test_hot_path.py` compares them with the counts of the last `python -m benchmarks hot_path
--write`. `callgrind` counts machine instructions and all allocations, with valgrind.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import importlib
import importlib.metadata
import itertools
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path, PurePath
from types import CodeType, FrameType
from typing import Any, NamedTuple

from llm_provider import Client
from llm_provider.simulator import Simulator

ROOT = Path(__file__).parent.parent
BASELINES = Path(__file__).parent / "results" / "hot_path.json"
RENEW = "python -m benchmarks hot_path --write"

LIMITS = {"instructions": (1.10, 0.0), "garbage": (1.5, 2.0), "blocks": (1.10, 5.0)}
"""The greatest accepted growth of each count: a factor, and an absolute amount for counts near 0.

Repeated on a busy machine, instructions and blocks differ by up to 4 %. The garbage of a call is found with
this call or with the next one, so a fifth more garbage, or one object more, is within the variation.
"""

BATCH = 24
HITS = 96
_WARM = 24
"""Calls that come before those that are counted: single calls use a template from the 18th equal one on."""
CHUNKS = 100
PARKED = (10, 40)
REPEATS = 4
CHILD_SECONDS = 110.0
POLL_SECONDS = 0.02
SDKS = ("openai", "anthropic", "google.genai", "aiohttp")
MODELS = {"OpenAI": "gpt-6.1-sol", "Anthropic": "claude-sonnet-5-5", "Gemini": "gemini-3.8-flash"}

Work = Callable[[int], Awaitable[object]]
"""The work of one round, given the number of the round."""

Count = dict[str, Any]
"""The counts of a case: floats by name, and under `packages` the instructions by package."""


class Case(NamedTuple):
    """Work that makes `calls` calls in each round, and the number of rounds."""

    work: Work
    calls: int = 1
    rounds: int = 7
    warm: int = 3


def environment() -> str:
    """The name of the environment: counts are compared only for the same Python and the same SDK.

    >>> environment().startswith("Python 3.")
    True
    """
    major = importlib.metadata.version("openai").partition(".")[0]
    return f"Python {sys.version_info.major}.{sys.version_info.minor}, openai {major}"


def baselines() -> dict[str, dict[str, Count]]:
    """The committed counts: environment → case → count; empty without any."""
    if not BASELINES.exists():
        return {}
    known: dict[str, dict[str, Count]] = json.loads(BASELINES.read_text(encoding="utf-8"))["data"]["counts"]
    return known


def measured(interpreter: str | Path = sys.executable) -> tuple[str, dict[str, Count]]:
    """Count in a new process, so that settings, hashes and modules are the same in every run.

    Args:
        interpreter: The Python of the environment to count in.

    Returns:
        The environment's name, and case → count.

    Raises:
        CalledProcessError: the process failed; its message is on standard error.
    """
    found = json.loads(run(interpreter, "-m", "benchmarks.hot_path"))
    return found["environment"], found["counts"]


def run(*command: str | Path, seconds: float = CHILD_SECONDS) -> str:
    """The output of a program, run in the root of this checkout with a clean environment and its library."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
    completed = subprocess.run(
        command,
        cwd=ROOT,
        env={**kept, "PYTHONHASHSEED": "0", "PYTHONPATH": str(ROOT / "src")},
        stdout=subprocess.PIPE,
        text=True,
        timeout=seconds,
        check=True,
    )
    return completed.stdout


def grown(before: Mapping[str, Count], now: Mapping[str, Count]) -> list[str]:
    """The counts that have grown beyond their limits, one line each, with the packages that grew.

    >>> before = {"acall": {"instructions": 1000, "packages": {"llm_provider": 400, "asyncio": 600}}}
    >>> grown(before, {"acall": {"instructions": 1100, "packages": {"llm_provider": 500, "asyncio": 600}}})
    []
    >>> grown(before, {"acall": {"instructions": 1101, "packages": {"llm_provider": 501, "asyncio": 600}}})
    ['acall: 1,101 instructions, 1,000 before (+10 %; llm_provider +101)']
    """
    lines = []
    for case, counts in before.items():
        for name, (factor, slack) in LIMITS.items():
            old, new = counts.get(name, 0.0), now[case].get(name, 0.0)
            if new > old * factor + slack:
                share = f"+{new / old - 1:.0%}".replace("%", " %") if old else "new"
                where = _where(counts["packages"], now[case]["packages"]) if name == "instructions" else ""
                lines.append(f"{case}: {new:,.10g} {name}, {old:,.10g} before ({share}{where})")
    return lines


def _where(before: Mapping[str, int], now: Mapping[str, int]) -> str:
    more = Counter(now)
    more.subtract(before)
    return "".join(f"; {package} +{count:,}" for package, count in more.most_common(3) if count > 0)


# --- the counting process --------------------------------------------------------------------------------


class Instructions:
    """Counts bytecode instructions by code object, in this thread and in threads that start later."""

    def __init__(self) -> None:
        self._counts: Counter[CodeType] = Counter()
        self._counting = False
        if sys.version_info >= (3, 12):
            sys.monitoring.use_tool_id(sys.monitoring.PROFILER_ID, "hot path")
            sys.monitoring.register_callback(
                sys.monitoring.PROFILER_ID, sys.monitoring.events.INSTRUCTION, self._executed
            )
        else:
            threading.settrace(self._trace)
            sys.settrace(self._trace)

    @contextlib.contextmanager
    def counting(self) -> Iterator[None]:
        """Count within the block, which runs slowly."""
        self._switch(True)
        yield
        self._switch(False)

    def so_far(self) -> dict[CodeType, int]:
        """A copy of the current counts; other threads may continue."""
        return dict(self._counts)

    def _switch(self, counting: bool) -> None:
        self._counting = counting
        if sys.version_info >= (3, 12):
            events = sys.monitoring.events.INSTRUCTION if counting else sys.monitoring.events.NO_EVENTS
            sys.monitoring.set_events(sys.monitoring.PROFILER_ID, events)

    def _executed(self, code: CodeType, _offset: int) -> None:
        self._counts[code] += 1

    def _trace(self, frame: FrameType, event: str, _argument: object) -> Any:
        if not self._counting:
            return None
        if event == "opcode":
            self._counts[frame.f_code] += 1
        elif event == "call":
            frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return self._trace


def package(filename: str) -> str:
    """The package of a source file.

    >>> package("/lib/python3.11/site-packages/openai/_client.py"), package("/llm_provider/_core/client.py")
    ('openai', 'llm_provider')
    >>> package("/lib/python3.11/asyncio/events.py"), package("/lib/python3.11/weakref.py")
    ('asyncio', 'standard library')
    """
    parts = PurePath(filename).parts
    if "site-packages" in parts:
        return PurePath(parts[parts.index("site-packages") + 1]).stem
    for name in ("llm_provider", "benchmarks", "asyncio"):
        if name in parts:
            return name
    return "standard library"


async def count(case: Case, instructions: Instructions) -> Count:
    """The counts of one case, per call."""
    for number in range(case.warm):
        await case.work(number)
    gc.collect()
    readings = []
    with instructions.counting():
        for number in range(case.rounds):
            before = instructions.so_far()
            await case.work(number)
            readings.append((before, instructions.so_far()))
    costs = [_by_package(before, after) for before, after in readings]
    median = sorted(costs, key=Counter.total)[case.rounds // 2]
    return {
        "instructions": round(median.total() / case.calls),
        "garbage": round(gc.collect() / case.rounds / case.calls, 2),
        "packages": {name: round(executed / case.calls) for name, executed in median.most_common()},
    }


def _by_package(before: Mapping[CodeType, int], after: Mapping[CodeType, int]) -> Counter[str]:
    cost: Counter[str] = Counter()
    for code, executed in after.items():
        if more := executed - before.get(code, 0):
            cost[package(code.co_filename)] += more
    del cost["benchmarks"]
    return cost


async def held_blocks(ask: Work, simulator: Simulator) -> float:
    """Memory blocks that a waiting call holds; the lowest reading, because some blocks are freed late."""
    seen = []
    for _ in range(REPEATS):
        few, many = [await _parked(ask, simulator, calls) for calls in PARKED]
        seen.append((many - few) / (PARKED[1] - PARKED[0]))
    return round(min(seen), 1)


async def _parked(ask: Work, simulator: Simulator, number: int) -> int:
    gc.collect()
    before = sys.getallocatedblocks()
    calls = [asyncio.ensure_future(ask(one)) for one in range(number)]
    await _settled(lambda: simulator.ledger().in_flight, number)
    held = await _settled(sys.getallocatedblocks) - before
    for call in calls:
        call.cancel()
    await asyncio.gather(*calls, return_exceptions=True)
    await _settled(lambda: simulator.ledger().in_flight, 0)
    return held


async def _settled(read: Callable[[], int], awaited: int | None = None) -> int:
    """Read until a value comes twice in a row, or until the awaited value comes."""
    last, value = None, read()
    while value != (last if awaited is None else awaited):
        await asyncio.sleep(POLL_SECONDS)
        last, value = value, read()
    return value


@contextlib.contextmanager
def cases(routes: Sequence[str] = ("OpenAI",), chunks: int = CHUNKS) -> Iterator[dict[str, Case]]:
    """All cases by name; batches, streams of so many chunks and hits on these routes."""
    with (
        tempfile.TemporaryDirectory() as directory,
        Client(cache="off", max_concurrent=PARKED[1]) as client,
        Client(cache_dir=directory) as caching,
    ):

        def acall(model: str) -> Work:
            return lambda number: client.acall(model, f"Question {number:03d}")

        unasked = itertools.count()

        async def stored(number: int) -> None:
            # The warm-up has already stored the questions of the first rounds, which would be hits.
            await caching.acall(MODELS["OpenAI"], f"Question {next(unasked):03d}")

        async def hit(model: str, number: int) -> None:
            assert caching.call(model, "Question 000").cached or number == 0

        async def many(model: str, number: int) -> None:
            prompts = [f"Question {index:03d}" for index in range(BATCH)]
            answers = client.call_many(model, prompts, max_concurrent=8, progress=False)
            assert not any(isinstance(answer, Exception) for answer in answers)

        async def hits(model: str, number: int) -> None:
            prompts = [f"Question {index:03d}" for index in range(HITS)]
            answers = caching.call_many(model, prompts, progress=False)
            assert number == 0 or all(getattr(answer, "cached", False) for answer in answers)

        async def stream(model: str, number: int) -> None:
            async with client.astream(model, "w " * (chunks - 1)) as deltas:
                async for _ in deltas:
                    pass

        made = {f"acall, {route}": Case(acall(model), warm=_WARM) for route, model in MODELS.items()}
        # The first calls open the eight databases of the cache, for reading and for writing.
        made["acall with a stored write"] = Case(stored, warm=48)
        for route in routes:
            name, model = "" if len(routes) == 1 else f", {route}", MODELS[route]
            made[f"hit{name}"] = Case(partial(hit, model), warm=_WARM)
            made[f"call_many{name}"] = Case(partial(many, model), calls=BATCH, rounds=3, warm=1)
            made[f"stream of {chunks} chunks{name}"] = Case(partial(stream, model), rounds=5, warm=1)
            if len(routes) > 1:
                made[f"hit in call_many{name}"] = Case(partial(hits, model), calls=HITS, rounds=5, warm=2)
        yield made


async def _count_routes() -> dict[str, int]:
    """The instructions of each case on each route."""
    instructions = Instructions()
    with cases(tuple(MODELS)) as made:
        return {name: (await count(case, instructions))["instructions"] for name, case in made.items()}


async def _count_all(simulator: Simulator) -> dict[str, Count]:
    instructions = Instructions()
    with cases() as made:
        counts = {name: await count(case, instructions) for name, case in made.items()}
        simulator.configure(latency=CHILD_SECONDS)
        for route in MODELS:
            name = f"acall, {route}"
            counts[name]["blocks"] = await held_blocks(made[name].work, simulator)
    return counts


def prepare(simulator: Simulator, sdks: Sequence[str] = SDKS) -> None:
    """Direct this process to a simulator and load SDKs; garbage then stays until it is counted."""
    os.environ.update(simulator.environment())
    for name in sdks:
        importlib.import_module(name)
    gc.disable()
    gc.freeze()


def main() -> None:
    with Simulator() as simulator:
        prepare(simulator)
        if sys.argv[1:] == ["--routes"]:
            print(json.dumps(asyncio.run(_count_routes()), indent=2))
            return
        counts = asyncio.run(_count_all(simulator))
    print(json.dumps({"environment": environment(), "counts": counts}))


if __name__ == "__main__":
    main()
