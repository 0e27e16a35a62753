"""The evidence of results: time and memory to export and to verify, and which changed bits are found."""

from __future__ import annotations

import io
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from llm_provider import Client, EvidenceError, Results, verify
from llm_provider._features.evidence.container import read_parts
from llm_provider.simulator import Simulator

from ..report import Cell, Result, Table
from . import Options

ROWS = BITS = 100_000
MODELS = ("gpt-6.1-sol", "claude-haiku-5-5", "gemini-3.8-flash", "groq/openai/gpt-oss-120b")
DISTINCT = 500
"""Answers of each model; the rows repeat them."""
_VERIFY = """
import re, sys, time
from llm_provider import verify
begin = time.perf_counter(), time.process_time()
rows = verify(sys.argv[1]).rows
print(rows, time.perf_counter() - begin[0], time.process_time() - begin[1],
      re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
"""

TEXT = (
    "The rows are answers of four wire formats from the simulator, 2,000 different ones, which are repeated. "
    "`verify` runs in a process of its own, and computes every key, reply, price and sum anew. A changed bit "
    "is found if `read_parts`, the first step of `verify`, refuses the file; every 1,000th changed file goes "
    "through `verify` itself."
)


def run(options: Options) -> Result:
    """Export, verify, and change bits."""
    with tempfile.TemporaryDirectory() as folder, Simulator() as simulator:
        with Client(cache_dir=Path(folder) / "cache") as client:
            answers = make_answers(client, simulator, 10 if options.quick else DISTINCT)
            sizes = (100, 200) if options.quick else (100, ROWS)
            rows = [measure(client, answers, size, Path(folder) / f"{size}.zip") for size in sizes]
        small = Path(folder) / "100.zip"
        bits = small.stat().st_size * 8
        # An odd step meets every bit of a byte.
        step = bits // (2_000 if options.quick else BITS) - 1 | 1
        begin = time.process_time()
        missed = count_missed(small, range(0, bits, step))
        seconds = time.process_time() - begin
    return Result(
        title="Evidence",
        text=TEXT,
        tables=[
            Table(
                title="Export and verify",
                columns=(
                    "rows",
                    "MB",
                    "export, s of CPU",
                    "verify, s",
                    "verify, s of CPU",
                    "peak memory, MB",
                ),
                rows=rows,
            ),
            Table(
                title="Single bits changed in a file of 100 rows",
                columns=("bits changed", "found", "missed", "s of CPU"),
                rows=[
                    [len(range(0, bits, step)), len(range(0, bits, step)) - missed, missed, f"{seconds:.0f}"]
                ],
            ),
        ],
    )


def make_answers(client: Client, simulator: Simulator, count: int) -> Results:
    """Answers of every format."""
    answers: Results = Results()
    for model in MODELS:
        url = simulator.url(model.partition("-")[0].replace("gpt", "openai").replace("claude", "anthropic")
                            if "/" not in model else "openai")  # fmt: skip
        prompts = [f"What is {number} + 1? Say why, in a sentence." for number in range(count)]
        answers += client.call_many(model, prompts, base_url=url, max_tokens=100)
    answers.raise_for_errors()
    return answers


def measure(client: Client, answers: Results, size: int, path: Path) -> list[Cell]:
    """Export so many rows, and verify them in another process."""
    results = Results((list(answers) * (size // len(answers) + 1))[:size])
    begin = time.process_time()
    results.export(path, client=client)
    exported = time.process_time() - begin
    command = [sys.executable, "-c", _VERIFY, str(path)]
    rows, wall, cpu, memory = subprocess.run(
        command, capture_output=True, check=True, text=True
    ).stdout.split()
    assert int(rows) == size
    megabytes = path.stat().st_size / 1e6
    return [size, f"{megabytes:.1f}", f"{exported:.1f}", f"{float(wall):.1f}", f"{float(cpu):.1f}",
            f"{int(memory) / 1024:.0f}"]  # fmt: skip


def count_missed(path: Path, bits: range) -> int:
    """The changed bits that are not found."""
    whole = bytearray(path.read_bytes())
    missed = 0
    for number, bit in enumerate(bits):
        whole[bit // 8] ^= 1 << bit % 8
        try:
            if number % 1000:
                read_parts(io.BytesIO(whole))
            else:
                changed = path.with_suffix(".changed.zip")
                changed.write_bytes(whole)
                verify(changed)
            missed += 1
        except EvidenceError:
            pass
        whole[bit // 8] ^= 1 << bit % 8
    return missed
