"""Commands run in the test's own process, and programs in one of their own."""

import io
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import pytest

from llm_provider._features.cli.main import main
from support import Ended, Program, RunCommand


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> RunCommand:
    """Run a command in this process."""

    def run(*arguments: str, stdin: bytes = b"") -> Ended:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code: object
        try:
            code = main(arguments)
        except SystemExit as ending:
            code = ending.code
        return Ended(code, *capsys.readouterr())

    return run


@pytest.fixture
def program(warm_python: list[str]) -> Program:
    """Start the program."""
    return partial(start, warm_python)


@pytest.fixture
def cold_program() -> Program:
    """Start the program in an interpreter of its own, which reads its variables and can be killed."""
    return partial(start, [sys.executable, "-W", "error"])


@contextmanager
def start(
    python: list[str], *arguments: str, stdout: int = subprocess.PIPE, **variables: str
) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [*python, "-m", "llm_provider", *arguments],
        # Empty is unset: output that arrives at once was flushed by the program.
        env={**os.environ, "PYTHONUNBUFFERED": "", **variables},
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.PIPE,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()
