"""The fixture as a stranger's test suite meets it."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from llm_provider.simulator import Simulator

SUITE = """
import os, pytest
from llm_provider import CacheMissError, Client, call

@pytest.mark.parametrize("question", ["1+1?", "2+2?"])
def test_sum(llm_cassette, question):
    assert call("gpt-6.1-sol", question).text == str(eval(question[:-1]))
    assert llm_cassette.path.name.startswith("test_suite.test_sum-")

def test_failing(llm_cassette):
    call("gpt-6.1-sol", "Hi")
    assert "FAIL" not in os.environ
    if not llm_cassette.recording:
        with pytest.raises(CacheMissError):
            call("gpt-6.1-sol", "Something else")
"""


Run = Callable[..., str]
"""Runs pytest with some arguments and variables, and returns its output."""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    (tmp_path / "test_suite.py").write_text(SUITE, encoding="utf-8")
    return tmp_path


@pytest.fixture
def run(suite: Path, warm_python: list[str]) -> Run:
    def run(*arguments: str, **variables: str) -> str:
        environment = {name: value for name, value in os.environ.items() if name != "CI"}
        return subprocess.run(
            [*warm_python, "-m", "pytest", "-q", "-p", "llm_provider.pytest_plugin", *arguments],
            cwd=suite,
            env={**environment, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **variables},
            capture_output=True,
            text=True,
        ).stdout

    return run


def test_answers_are_recorded_once_and_replayed(suite: Path, run: Run, simulator: Simulator) -> None:
    recorded = run()
    assert "3 passed" in recorded, recorded
    assert simulator.ledger().requests == 3
    names = sorted(path.name for path in (suite / "cassettes").iterdir())
    assert names == [f"test_suite.{test}.jsonl" for test in ("test_failing", "test_sum-1-1", "test_sum-2-2")]
    before = {path.name: path.read_bytes() for path in (suite / "cassettes").iterdir()}
    replayed = run(OPENAI_API_KEY="", OPENAI_BASE_URL=os.environ["OPENAI_BASE_URL"], CI="true")
    assert "3 passed" in replayed, replayed
    assert simulator.ledger().requests == 3
    assert {path.name: path.read_bytes() for path in (suite / "cassettes").iterdir()} == before
    assert "3 passed" in run("--llm-cassettes=record")
    assert simulator.ledger().requests == 6


def test_a_failed_test_leaves_no_recording(suite: Path, run: Run, simulator: Simulator) -> None:
    assert "1 failed" in run("-k", "failing", FAIL="1")
    assert not (suite / "cassettes").exists()


@pytest.mark.parametrize("variables", [{}, {"CI": "true"}])
def test_nothing_is_asked_where_only_replaying_is_allowed(
    suite: Path, run: Run, simulator: Simulator, variables: dict[str, str]
) -> None:
    ended = run(*([] if variables else ["--llm-cassettes=replay"]), **variables)
    assert "3 errors" in ended
    assert "there is no recording" in ended
    assert simulator.ledger().requests == 0
