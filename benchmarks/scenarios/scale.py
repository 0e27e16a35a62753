"""1,000,000 rows through `iter_many` and `map`, each killed twice, and caches of up to 5,000,000 entries.

Processes with rows are observed from outside, through /proc and the lines that they write.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from llm_provider.simulator import Simulator

from ..hot_path import ROOT
from ..provider import MODELS, cpu_seconds
from ..report import Cell, Chart, Result, Table
from . import Options

ROWS, PARTS = 1_000_000, 10
KILLED_AFTER = (3, 6)
"""The tenths of the rows after which the first and the second process are killed."""
ENTRIES = (10_000, 100_000, 1_000_000, 5_000_000)
FIRST, LOOKUPS, WRITES, ESTIMATED = 100, 5_000, 500, 100_000
CONCURRENT = 64

ITERATE = """
import sys
from llm_provider import Client
model, rows, goal = sys.argv[1], int(sys.argv[2]), sys.argv[3]
with Client(max_concurrent=64) as client, open(goal, "w", buffering=1) as file:
    prompts = (f"{number}+1?" for number in range(rows))
    for index, answer in client.iter_many(model, prompts, progress=False):
        assert answer.text == str(index + 1), answer
        file.write("row\\n")
"""

FILL = """
import hashlib, sys
from llm_provider import Client
from llm_provider._core.store.store import Store
model, asked, present, size = sys.argv[1], *map(int, sys.argv[2:])
with Client(max_concurrent=64) as client:
    client.call_many(model, [f"{number}+1?" for number in range(asked)], on_error="raise", progress=False)
    store = Store(client.cache.directory, print)
    (_, value), *_ = store.newest("openai chat/completions", 1)
    for first in range(max(present, asked), size, 10_000):
        numbers = range(first, min(first + 10_000, size))
        keys = [hashlib.sha256(b"%d" % number).hexdigest() for number in numbers]
        store.insert([(key, value, "openai chat/completions") for key in keys])
    store.close()
"""
"""Stores real answers, and then copies of one under keys that nobody asks for, until there are `size`."""

SEEN = """
import json, os, sys, time
from llm_provider import Client
model, round, first, lookups, writes, estimated = sys.argv[1], *map(int, sys.argv[2:])
begun = time.perf_counter()
with Client(max_concurrent=1) as client:
    assert client.call(model, "0+1?").cached
    opened = time.perf_counter() - begun
    for number in range(first):
        client.call(model, f"{number}+1?")
        client.call(model, f"{number}+2?", cache=False)
    before = time.process_time()
    for number in range(first, first + lookups):
        assert client.call(model, f"{number}+1?").cached
    looked_up = time.process_time() - before
    before = time.process_time()
    for number in range(writes):
        assert not client.call(model, f"{number}+{round + 3}?").cached
    written = time.process_time() - before
    before = time.process_time()
    for number in range(writes):
        client.call(model, f"{number}+2?", cache=False)
    called = time.process_time() - before
    begun = time.perf_counter()
    client.estimate(model, [f"{number}+1?" for number in range(estimated)])
    seconds = time.perf_counter() - begun
    begun = time.perf_counter()
    client.cache.stats()
    counted = time.perf_counter() - begun
resident = int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
used = [1e6 * looked_up / lookups, 1e6 * (written - called) / writes]
print(json.dumps([1e3 * opened, *used, seconds, counted, resident]))
"""


class Sample(NamedTuple):
    """Rows done, seconds of CPU and resident MB of a process at one moment."""

    rows: int
    seconds: float
    memory: float


class Part(NamedTuple):
    """A tenth of the rows: whether a process had asked them before, µs of CPU a row, resident MB."""

    stored: bool
    cost: float
    memory: float


def run(options: Options) -> Result:
    """First the rows, of `--clients map` or iter_many alone, and else the caches too."""
    rows = ROWS // 500 if options.quick else ROWS
    table: list[list[Cell]] = []
    series: dict[str, list[float | None]] = {}
    for way in options.clients or ("iter_many", "map"):
        parts = list(_run_rows(way, rows))
        series[way] = [part.cost for part in parts if not part.stored]
        for name, stored in (("answered and stored", False), ("found in the cache", True)):
            costs = [part.cost for part in parts if part.stored is stored]
            memory = [part.memory for part in parts if part.stored is stored]
            table.append([way, name, costs[0], costs[-1], costs[-1] / costs[0], memory[0], memory[-1]])
    sizes = [size // 500 for size in ENTRIES] if options.quick else () if options.clients else ENTRIES
    columns = ("way", "rows", "first tenth: µs", "last: µs", "last of first", "first tenth: MB", "last: MB")
    entries = ("entries", "GB", "opening: ms", "look-up: µs", "write: µs", "estimate: s", "stats: s", "MB")
    return Result(
        title="Many rows, large caches",
        text=f"{rows:,} rows through `iter_many` and `llm-provider map`, {CONCURRENT} at a time, over HTTP "
        "to the simulator in a process of its own. Each way is killed after "
        f"{KILLED_AFTER[0]} and after {KILLED_AFTER[1]} tenths, and a new process asks all rows again. The "
        "columns are µs of CPU a row, and the resident memory at the end of a tenth. Caches are filled "
        "with copies of a stored answer under keys that nobody asks for. A new process opens the cache, "
        f"reads {LOOKUPS:,} answers one after the other, stores {WRITES:,} (CPU more than that of calls "
        f"without a cache), estimates {ESTIMATED:,} rows and counts the entries.",
        tables=[
            Table(title="Rows", columns=columns, rows=table),
            Table(title="Caches", columns=entries, rows=_measure_caches(sizes, options)),
        ],
        charts=[
            Chart(
                title="CPU of a row that is answered and stored",
                x=list(range(1, PARTS + 1)),
                x_label="tenth of the rows",
                y_label="µs",
                series=series,
                kind="lines",
            )
        ],
    )


def _run_rows(way: str, rows: int) -> Iterator[Part]:
    """The tenths of all processes, one process after the other."""
    with Simulator() as simulator, tempfile.TemporaryDirectory() as folder:
        goal, source = Path(folder, "answers.jsonl"), Path(folder, "prompts.txt")
        command = [sys.executable, "-c", ITERATE, MODELS["openai"], str(rows), str(goal)]
        if way == "map":
            source.write_text("".join(f"{number}+1?\n" for number in range(rows)), encoding="utf-8")
            command = [sys.executable, "-m", "llm_provider", "map", MODELS["openai"], str(source), str(goal)]
            command += ["--max-concurrent", str(CONCURRENT), "--no-progress"]
        known = 0
        for last in (*KILLED_AFTER, PARTS):
            goal.unlink(missing_ok=True)
            environment = _variables(simulator, folder)
            with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL) as process:
                samples = list(_watch(process, goal, rows, last))
                if last < PARTS:
                    process.kill()
            if last == PARTS and process.returncode:
                raise RuntimeError("the measured process failed; its message is on standard error")
            for before, after in pairwise(samples):
                if after.rows == before.rows:  # in a quick run
                    continue
                cost = 1e6 * (after.seconds - before.seconds) / (after.rows - before.rows)
                yield Part(2 * after.rows < 2 * known + rows // PARTS, cost, after.memory)
            known = samples[-1].rows


def _watch(process: subprocess.Popen[bytes], goal: Path, rows: int, last: int) -> Iterator[Sample]:
    """One sample after the first rows, which have the start, and one at each tenth until the last."""
    done = position = part = 0
    sample = Sample(0, 0.0, 0.0)
    while part <= last and process.poll() is None:
        if goal.exists():
            with goal.open("rb") as file:
                file.seek(position)
                text = file.read()
            position += len(text)
            done += text.count(b"\n")
            sample = Sample(done, cpu_seconds(process.pid), _find_resident(process.pid))
        if done * PARTS >= max(part * rows, PARTS):
            yield sample
            part += 1
        time.sleep(0.01)
    if part == last:  # it ended between two looks
        yield sample._replace(rows=rows)


def _measure_caches(sizes: Sequence[int], options: Options) -> list[list[Cell]]:
    lookups, writes, estimated = (options.count(number) for number in (LOOKUPS, WRITES, ESTIMATED))
    rows: list[list[Cell]] = []
    with Simulator() as simulator, tempfile.TemporaryDirectory() as folder:
        variables, present = _variables(simulator, folder), 0
        for size in sizes:
            _run_program(FILL, variables, FIRST + lookups, present, size)
            present = size
            stored = sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file())
            found = [
                json.loads(_run_program(SEEN, variables, size + number, FIRST, lookups, writes, estimated))
                for number in range(options.rounds_or(3))
            ]
            rows.append([size, stored / 1e9, *map(statistics.median, zip(*found, strict=True))])
    return rows


def _run_program(program: str, variables: dict[str, Any], *numbers: int) -> str:
    command = [sys.executable, "-c", program, MODELS["openai"], *map(str, numbers)]
    ran = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    if ran.returncode:
        raise RuntimeError(f"the measured process failed: {ran.stderr[-2000:]}")
    return ran.stdout


def _variables(simulator: Simulator, folder: str) -> dict[str, Any]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
    places = {"LLM_PROVIDER_CACHE_DIR": str(Path(folder, "cache")), "PYTHONPATH": str(ROOT / "src")}
    return {**kept, **simulator.environment(), **places}


def _find_resident(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6
