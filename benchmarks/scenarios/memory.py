"""Memory and open files over 50,000 calls, through `call_many` and through `acall`.

The measured process does nothing else. It is observed from outside, through /proc.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from ..environments import interpreter
from ..provider import MODELS, Provider
from ..report import Cell, Chart, Result, Table
from . import Options

STEP = 1000
SAMPLES = 50
CONCURRENT = 32
ENVIRONMENT = "ours-openai3"

MANY = """
import sys
from llm_provider import Client
model, cache, samples, step = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
with Client(cache=cache, max_concurrent={concurrent}) as client:
    for sample in range(samples):
        prompts = [f"What is {{sample}}+{{number}}?" for number in range(step)]
        answers = client.call_many(model, prompts, on_error="raise", progress=False)
        assert [answer.text for answer in answers] == [str(sample + number) for number in range(step)]
        del answers
        print(flush=True)
        sys.stdin.readline()
"""
SINGLE = """
import asyncio, sys
from llm_provider import Client
model, cache, samples, step = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
async def ask(client, sample, numbers):
    for number in numbers:
        answer = await client.acall(model, f"What is {{sample}}+{{number}}?")
        assert answer.text == str(sample + number)
async def main():
    async with Client(cache=cache, max_concurrent={concurrent}) as client:
        for sample in range(samples):
            numbers = iter(range(step))
            await asyncio.gather(*(ask(client, sample, numbers) for _ in range({concurrent})))
            print(flush=True)
            sys.stdin.readline()
asyncio.run(main())
"""
CASES = {
    "`call_many`": (MANY, "off"),
    "`acall`": (SINGLE, "off"),
    "`call_many`, each answer stored": (MANY, "refresh"),
}


class Sample(NamedTuple):
    """Resident MB, and the number of open files."""

    memory: float
    files: int


def run(options: Options) -> Result:
    """Make the calls of every case, one case after the other."""
    step, count = options.count(STEP), options.count(SAMPLES)
    python = sys.executable if options.here else interpreter(ENVIRONMENT)
    with Provider() as provider:
        taken = {name: _samples(provider, python, *case, count, step) for name, case in CASES.items()}
    late = {name: samples[count // 2 :] for name, samples in taken.items()}
    growth = {name: _range([one.memory for one in samples]) for name, samples in late.items()}
    files = {name: _range([one.files for one in samples]) for name, samples in late.items()}
    rows: list[list[Cell]] = [
        [name, samples[0].memory, samples[count // 2].memory, samples[-1].memory, growth[name], files[name]]
        for name, samples in taken.items()
    ]
    columns = (
        "calls through",
        f"after {step:,}",
        "halfway",
        "at the end",
        "2nd half: highest less lowest",
        "files",
    )
    return Result(
        title="Memory over many calls",
        text=f"{count * step:,} calls by one process, {CONCURRENT} at a time, OpenAI over TLS, every "
        f"answer checked and dropped. The columns show resident MB after {step:,} calls and later. The last "
        "two columns are the largest differences within the second half, of memory and of the number of open "
        "files.",
        tables=[Table(title="MB resident", columns=columns, rows=rows)],
        charts=[
            Chart(
                title="Resident memory",
                x=[step * (number + 1) for number in range(count)],
                x_label="calls",
                y_label="MB",
                series={name: [one.memory for one in samples] for name, samples in taken.items()},
                kind="lines",
            )
        ],
        measured={"memory_growth": max(growth.values()), "descriptor_growth": max(files.values())},
        data={name: [list(one) for one in samples] for name, samples in taken.items()},
    )


def _samples(
    provider: Provider, python: str | Path, program: str, cache: str, count: int, step: int
) -> list[Sample]:
    """One sample after each step, while the process waits."""
    code = program.format(concurrent=CONCURRENT)
    command = (python, "-c", code, MODELS["openai"], cache, str(count), str(step))
    samples = []
    with (
        tempfile.TemporaryDirectory() as directory,
        subprocess.Popen(
            command,
            env=_variables(provider, directory),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        while process.stdout.readline():
            samples.append(_seen(process.pid))
            process.stdin.write("\n")
            process.stdin.flush()
    if process.returncode:
        raise RuntimeError("the measured process failed; its message is on standard error")
    return samples


def _variables(provider: Provider, directory: str) -> Mapping[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return {**kept, **provider.simulator.environment(), "LLM_PROVIDER_CACHE_DIR": directory}


def _seen(pid: int) -> Sample:
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return Sample(pages * os.sysconf("SC_PAGE_SIZE") / 1e6, sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir()))


def _range(values: list[float] | list[int]) -> float:
    return max(values) - min(values)
