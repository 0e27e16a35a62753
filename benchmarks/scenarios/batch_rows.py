"""20,000 rows of a kilobyte through each batch API: CPU per row, and memory, next to live calls."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from typing import NamedTuple

from llm_provider.simulator import Simulator

from ..batch_kills import MODELS
from ..hot_path import ROOT
from ..report import Cell, Result, Table
from . import Options

ROWS, LIVE_CALLS = 20_000, 2_000
CONCURRENT = 32
PROVIDERS = ("openai", "anthropic", "gemini", "together_ai")

PROGRAM = """
import json, os, resource, sys, time
from llm_provider import Client
model, delivery, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
filler = "word " * 200
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
with Client(max_concurrent={concurrent}) as client:
    client.call_many(model, ["1+1?"], delivery=delivery, progress=False)
    prompts = [f"{{filler}}{{number}}+1?" for number in range(count)]
    before, memory = time.process_time(), resident()
    found = client.call_many(model, prompts, delivery=delivery, on_error="raise", progress=False)
    used = time.process_time() - before
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    assert found.texts == [str(number + 1) for number in range(count)]
print(json.dumps([1e6 * used / count, peak - memory]))
"""
"""Prints microseconds of CPU per row, and MB more at the highest than before."""


class Used(NamedTuple):
    """The use of one process."""

    microseconds: float
    megabytes: float


def run(options: Options) -> Result:
    """Alternate batch and live, round after round."""
    rows, calls, rounds = options.count(ROWS), options.count(LIVE_CALLS), options.rounds_or(3)
    providers = options.chosen(PROVIDERS)
    used: dict[tuple[str, str], list[Used]] = {}
    for _ in range(rounds):
        for provider in providers:
            for delivery, count in (("batch", rows), ("live", calls)):
                used.setdefault((provider, delivery), []).append(_used(provider, delivery, count))
    median = {name: Used(*map(statistics.median, zip(*found, strict=True))) for name, found in used.items()}
    table: list[list[Cell]] = []
    for provider in providers:
        batch, live = median[provider, "batch"], median[provider, "live"]
        figures = (batch.microseconds, live.microseconds, batch.microseconds / live.microseconds)
        table.append([provider, *figures, batch.megabytes])
    columns = ("provider", "batch: µs per row", "live: µs per call", "batch / live", "batch: MB more")
    return Result(
        title="Rows of batches",
        text=f"{rows:,} rows with prompts of a kilobyte as one `call_many(..., delivery='batch')`, and "
        f"{calls:,} of them as live calls, {CONCURRENT} at a time over HTTP. Every answer is stored, and "
        "compared with the right one. CPU is that of the whole process without its start; memory is the "
        "highest less that before the call, inputs and results included. "
        f"Medians of {rounds} rounds, a new process and a new cache each.",
        tables=[Table(title="CPU and memory", columns=columns, rows=table)],
        data={" ".join(name): [list(one) for one in found] for name, found in used.items()},
    )


def _used(provider: str, delivery: str, count: int) -> Used:
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
    program = PROGRAM.format(concurrent=CONCURRENT)
    with Simulator(batch_seconds=3600.0) as simulator, tempfile.TemporaryDirectory() as cache:
        ran = subprocess.run(
            [sys.executable, "-c", program, MODELS[provider], delivery, str(count)],
            env={
                **kept,
                **simulator.environment(),
                "LLM_PROVIDER_CACHE_DIR": cache,
                "PYTHONPATH": str(ROOT / "src"),
            },
            capture_output=True,
            text=True,
            check=False,
        )
    if ran.returncode:
        raise RuntimeError(f"the measured process failed: {ran.stderr[-2000:]}")
    return Used(*json.loads(ran.stdout))
