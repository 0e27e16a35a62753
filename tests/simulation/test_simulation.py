"""Programs by seed, and that a seed says everything."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from simulation.programs import make_program
from simulation.shrinking import list_smaller, shrink

ROOT = Path(__file__).parents[2]
CORPUS = sorted(map(str, (ROOT / "tests" / "simulation" / "corpus").glob("*.json")))
PROCESSOR_SECONDS = 33
"""For each of two runs side by side: 3 for the corpus, and 30 for seeds. The start is included."""


@pytest.mark.timeout(600)
def test_every_promise_is_kept_and_a_program_says_everything() -> None:
    # In the second run objects have other addresses, and other programs have run before each of the corpus.
    runs = []
    for options, first, corpus in (((), "0", CORPUS), (("-X", "frozen_modules=off"), "1000", CORPUS[::-1])):
        seeds = (first, "1000000", "--cpu", str(PROCESSOR_SECONDS), "--digest", "--program", *corpus)
        command = [sys.executable, *options, "-m", "tests.simulation", *seeds]
        pipe = subprocess.PIPE
        runs.append(subprocess.Popen(command, cwd=ROOT, stdout=pipe, stderr=pipe, text=True))
    outputs = [run.communicate() for run in runs]
    for run, (out, errors) in zip(runs, outputs, strict=True):
        assert run.returncode == 0, out[-20_000:] + errors[-5_000:]
    first, second = (out.splitlines()[: len(CORPUS)] for out, _ in outputs)
    assert first == second[::-1]
    assert len({line.split()[-1] for line in first}) == len(CORPUS) > 10


def test_a_failing_program_is_made_small() -> None:
    program = make_program(35)
    small = shrink(program, lambda smaller: any(smaller["processes"]))
    assert len(small["processes"]) == 1
    assert [len(thread["steps"]) for thread in small["processes"][0]["threads"]] == [1]
    assert small["faults"] == []
    assert not list(list_smaller(small))
