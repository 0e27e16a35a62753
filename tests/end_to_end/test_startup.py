import os

import pytest

from benchmarks.scenarios.startup import Processes, Program, measure


def test_a_program_has_its_time_and_its_memory() -> None:
    idle, busy = Program("pass"), Program("kept = bytearray(50_000_000); sum(range(3_000_000))")
    costs = measure([idle, busy], Processes(os.environ, here=True), rounds=3)
    assert costs[busy].cpu > costs[idle].cpu > 0
    assert costs[busy].memory > costs[idle].memory + 40
    assert costs[busy].wall > 0


def test_a_program_that_fails_is_an_error(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(RuntimeError, match="failed"):
        Processes(os.environ, here=True).time(Program("raise SystemExit('no')"))
    assert capfd.readouterr().err == "no\n"
