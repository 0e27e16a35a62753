"""Where a call, a stored write, a batch, a stream and a hit execute what is above raw aiohttp, down to 90 %.

python -m benchmarks.scenarios.profiles    # the counts by case and part, as JSON
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import PurePath
from types import CodeType

from llm_provider.simulator import Simulator

from .. import hot_path
from ..clients import Target
from ..clients.raw import Aiohttp
from ..hot_path import MODELS, Case, Instructions
from ..report import Cell, Result, Table
from . import Options

ACCOUNTED = 0.9
"""The share of the difference that the rows of a table explain together."""

CHUNKS = 30
RAW, STREAM = "raw aiohttp", f"stream of {CHUNKS} chunks"
ABOVE = (
    ("a call above raw aiohttp", "acall, OpenAI", RAW),
    ("a call with a stored write above one without", "acall with a stored write", "acall, OpenAI"),
    ("a call of call_many above raw aiohttp", "call_many", RAW),
    (f"a {STREAM} above raw aiohttp", STREAM, f"{RAW}, {STREAM}"),
    ("a hit of call", "hit, OpenAI", ""),
    ("a hit of call_many", "hit in call_many, OpenAI", ""),
)

Parts = Counter[str]
"""Instructions per call by part: a module of the library, or another package."""


def run(options: Options) -> Result:
    """Count in a process of its own, so that hashes and modules are the same in every run."""
    counts = json.loads(hot_path.run(sys.executable, "-m", __spec__.name))
    tables = []
    for title, case, base in ABOVE:
        more = Counter(counts[case])
        more.subtract(counts.get(base, {}))
        tables.append(_account(title, more))
    text = (
        "Bytecode instructions per call of all threads. A module of the library is named by its folder, all "
        "else by its package. A part that executes less than the base counts below zero. The rows end where "
        f"they explain {ACCOUNTED:.0%} of the difference. SQLite, hashes and the parsing of JSON execute no "
        "bytecode; `benchmarks/results/hot_path.md` has machine instructions."
    ).replace("%", " %")
    title = f"What is above raw aiohttp, by part ({hot_path.environment()})"
    return Result(title=title, text=text, tables=tables, data={"counts": counts})


def _account(title: str, more: Parts) -> Table:
    total, known = more.total(), 0
    rows: list[list[Cell]] = []
    for part, executed in more.most_common():
        known += executed
        rows.append([part, executed, 100 * executed / total])
        if known >= ACCOUNTED * total:
            break
    rows.append(["all", total, 100.0])
    return Table(title=title[0].upper() + title[1:], columns=("part", "instructions", "%"), rows=rows)


def name_part(filename: str) -> str:
    """The folder and module of a source file of this repository, or the package of another one.

    >>> name_part("/src/llm_provider/_core/journey/sender.py"), name_part("/lib/python3.11/asyncio/events.py")
    ('journey/sender', 'asyncio')
    >>> name_part("/src/llm_provider/_core/formats/transport/connection.py")
    'transport/connection'
    """
    path = PurePath(filename)
    is_ours = {"llm_provider", "benchmarks"}.intersection(path.parts)
    return f"{path.parent.name}/{path.stem}" if is_ours else hot_path.package(filename)


async def _count_case(case: Case, instructions: Instructions) -> Parts:
    """The instructions of the median round, per call."""
    for number in range(case.warm):
        await case.work(number)
    readings: list[tuple[Mapping[CodeType, int], Mapping[CodeType, int]]] = []
    with instructions.counting():
        for number in range(case.warm, case.warm + case.rounds):
            before = instructions.so_far()
            await case.work(number)
            readings.append((before, instructions.so_far()))
    costs = []
    for before, after in readings:
        parts = Parts()
        for code, executed in after.items():
            parts[name_part(code.co_filename)] += executed - before.get(code, 0)
        # What the cases themselves execute.
        del parts["benchmarks/hot_path"], parts["scenarios/profiles"]
        costs.append(parts)
    median = sorted(costs, key=Counter.total)[case.rounds // 2]
    return Parts({part: round(executed / case.calls) for part, executed in median.items() if executed})


async def _count_all(simulator: Simulator) -> dict[str, Parts]:
    raw = Aiohttp(Target(route="openai", model=MODELS["OpenAI"], base_url=simulator.url("openai")))

    def ask(text: str) -> dict[bool, object]:
        prepared: dict[bool, object] = raw.prepare([{"role": "user", "content": text}])
        return prepared

    async def call(number: int) -> None:
        await raw.call(ask(f"Question {number:03d}"))

    async def stream(number: int) -> None:
        async for _ in raw.stream(ask("w " * (CHUNKS - 1))):
            pass

    instructions = Instructions()
    cases = {RAW: Case(call), f"{RAW}, {STREAM}": Case(stream, rounds=5, warm=1)}
    counts = {name: await _count_case(case, instructions) for name, case in cases.items()}
    with hot_path.cases(chunks=CHUNKS) as made:
        counts |= {name: await _count_case(case, instructions) for name, case in made.items()}
    with hot_path.cases(("OpenAI", "Gemini")) as made:
        for name in ("acall with a stored write", "hit, OpenAI", "hit in call_many, OpenAI"):
            counts[name] = await _count_case(made[name], instructions)
    await raw.close()
    return counts


def main() -> None:
    with Simulator() as simulator:
        hot_path.prepare(simulator)
        print(json.dumps(asyncio.run(_count_all(simulator))))


if __name__ == "__main__":
    main()
