"""Where a call, a write, a batch, a stream, a hit and telemetry execute what is above a base, down to 90 %.

python -m benchmarks.scenarios.profiles               # the counts by case and part, as JSON
python -m benchmarks.scenarios.profiles ours_spans    # those of one client by part
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
from ..clients import Target, describe, offers
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
OBSERVED = (
    ("ours_metered", "ours_user"),
    ("ours_unsampled", "ours_untraced"),
    ("ours_spans", "ours_untraced"),
    ("ours_metrics", "ours_untraced"),
    ("ours_traced", "ours_untraced"),
)
"""Each with the client above which it is counted."""
OBSERVED_CALLS = 128
"""Calls of a round, so that each has its share of what is recorded for many calls together."""

Parts = Counter[str]
"""Instructions per call by part: a module of the library, or another package."""


def run(options: Options) -> Result:
    """Count in a process of its own, so that hashes and modules are the same in every run."""
    counts = json.loads(hot_path.run(sys.executable, "-m", __spec__.name))
    tables = []
    clients = dict.fromkeys(client for pair in OBSERVED for client in pair)
    counts |= {client: count_client(client) for client in clients}
    observed = [(f"{describe(client)}, above {describe(base)}", client, base) for client, base in OBSERVED]
    for title, case, base in (*ABOVE, *observed):
        more = Counter(counts[case])
        more.subtract(counts.get(base, {}))
        tables.append(_account(title, more))
    text = (
        "Bytecode instructions per call of all threads. A module of the library is named by its folder, one "
        "of OpenTelemetry by its path, all else by its package. A part that executes less than the base "
        f"counts below zero. The rows end where they explain {ACCOUNTED:.0%} of the difference. SQLite, "
        "hashes and the parsing of JSON execute no bytecode; `benchmarks/results/hot_path.md` has machine "
        "instructions."
    ).replace("%", " %")
    title = f"What is above raw aiohttp, by part ({hot_path.environment()})"
    return Result(title=title, text=text, tables=tables, data={"counts": counts})


def count_client(client: str) -> dict[str, int]:
    """The instructions of a call of one client by part, in a new process."""
    counts: dict[str, int] = json.loads(hot_path.run(sys.executable, "-m", __name__, client))
    return counts


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

    Modules of OpenTelemetry have their whole name.

    >>> name_part("/src/llm_provider/_core/journey/sender.py"), name_part("/lib/python3.11/asyncio/events.py")
    ('journey/sender', 'asyncio')
    >>> name_part("/src/llm_provider/_core/formats/transport/connection.py")
    'transport/connection'
    >>> name_part("/site-packages/opentelemetry/sdk/trace/__init__.py")
    'opentelemetry/sdk/trace'
    """
    path = PurePath(filename)
    if "opentelemetry" in path.parts:
        module = path.parent if path.stem == "__init__" else path.with_suffix("")
        return "/".join(module.parts[path.parts.index("opentelemetry") :])
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


async def _count_client(name: str) -> Parts:
    client = offers()[name].make(Target(route="openai", model=MODELS["OpenAI"]))

    async def call(_: int) -> None:
        for number in range(OBSERVED_CALLS):
            await client.call(f"Question {number:03d}")

    return await _count_case(Case(call, calls=OBSERVED_CALLS, rounds=3, warm=1), Instructions())


def main() -> None:
    """Print the counts of all cases, or of the client that is named."""
    with Simulator() as simulator:
        if names := sys.argv[1:]:
            hot_path.prepare(simulator, ("openai", "aiohttp"))
            print(json.dumps(asyncio.run(_count_client(*names))))
        else:
            hot_path.prepare(simulator)
            print(json.dumps(asyncio.run(_count_all(simulator))))


if __name__ == "__main__":
    main()
