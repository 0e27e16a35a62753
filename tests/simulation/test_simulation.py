"""Programs by seed, and that a seed says everything."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from simulation.process import HOLDERS
from simulation.programs import make_program
from simulation.shrinking import list_smaller, shrink

ROOT = Path(__file__).parents[2]
CORPUS = sorted(map(str, (ROOT / "tests" / "simulation" / "corpus").glob("*.json")))
DEFECTS = (ROOT / "tests" / "simulation" / "mutants" / "README.md").read_text(encoding="utf-8")
SEEDS = sorted(set(re.findall(r"\| seed (\d+)", DEFECTS)))
"""Each has shown a defect of the past. `make night` plays others."""


@pytest.mark.timeout(600)
def test_every_promise_is_kept_and_a_program_says_everything() -> None:
    # In the second run objects have other addresses, and other programs have run before each of the corpus.
    runs = []
    frozen = ("-X", "frozen_modules=off")
    for options, programs in (((), [*CORPUS, *SEEDS[::2]]), (frozen, [*CORPUS[::-1], *SEEDS[1::2]])):
        command = [sys.executable, *options, "-m", "tests.simulation", "--digest", "--program", *programs]
        pipe = subprocess.PIPE
        runs.append(subprocess.Popen(command, cwd=ROOT, stdout=pipe, stderr=pipe, text=True))
    outputs = [run.communicate() for run in runs]
    for run, (out, errors) in zip(runs, outputs, strict=True):
        assert run.returncode == 0, out[-20_000:] + errors[-5_000:]
    first, second = (out.splitlines()[: len(CORPUS)] for out, _ in outputs)
    assert first == second[::-1]
    assert len({line.split()[-1] for line in first}) == len(CORPUS) > 10
    assert len(SEEDS) > 30


def test_every_module_that_holds_the_machine_is_one_of_the_library() -> None:
    modules = [f"/{path.relative_to(ROOT)}" for path in (ROOT / "src" / "llm_provider").rglob("*.py")]
    for name in HOLDERS[1:]:
        assert [module for module in modules if module.endswith(name)], name


def test_a_failing_program_is_made_small() -> None:
    program = make_program(35)
    small = shrink(program, lambda smaller: any(smaller["processes"]))
    assert len(small["processes"]) == 1
    assert [len(thread["steps"]) for thread in small["processes"][0]["threads"]] == [1]
    assert small["faults"] == []
    assert not list(list_smaller(small))
