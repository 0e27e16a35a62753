"""Programs by seed, and that a seed says everything."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from simulation.programs import make_program
from simulation.shrinking import list_smaller, shrink

ROOT = Path(__file__).parents[2]
PROCESSOR_SECONDS = 30
"""For each of two parts, which run side by side. The start is included."""


def run(*arguments: str, options: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    """Run the command of the simulation in its own interpreter, which has some options."""
    command = [sys.executable, *options, "-m", "tests.simulation", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("first", [0, 1000])
def test_every_promise_is_kept(first: int) -> None:
    done = run(str(first), "1000000", "--cpu", str(PROCESSOR_SECONDS))
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-5_000:]


def test_what_was_found_before_is_kept() -> None:
    corpus = sorted(map(str, (ROOT / "tests" / "simulation" / "corpus").glob("*.json")))
    done = run("--program", *corpus)
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-5_000:]
    assert done.stdout.startswith(f"{len(corpus)} programs")


def test_a_seed_says_everything() -> None:
    # The second run has its objects at other addresses.
    first, second = (
        run("20", "2", "--digest"),
        run("20", "2", "--digest", options=("-X", "frozen_modules=off")),
    )
    assert first.stdout == second.stdout
    assert len(set(first.stdout.split())) > 4


def test_a_failing_program_is_made_small() -> None:
    program = make_program(35)
    small = shrink(program, lambda smaller: any(smaller["processes"]))
    assert len(small["processes"]) == 1
    assert [len(thread["steps"]) for thread in small["processes"][0]["threads"]] == [1]
    assert small["faults"] == []
    assert not list(list_smaller(small))
