"""`python -m llm_provider.simulator` as a program."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import llm_provider.simulator

ROOT = Path(llm_provider.simulator.__file__).parents[2]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "llm_provider.simulator", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60)


def test_its_exit_code_is_that_of_the_command() -> None:
    helped, mistaken = run("--help"), run("--error-rate", "2")
    assert (helped.returncode, mistaken.returncode) == (0, 2)
    assert helped.stdout.startswith("usage: python -m llm_provider.simulator")
    assert "error_rate" in mistaken.stderr
