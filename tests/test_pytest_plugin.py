"""The fixture as a stranger's test suite meets it."""

from __future__ import annotations

import os
import subprocess
import sys
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


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    (tmp_path / "test_suite.py").write_text(SUITE, encoding="utf-8")
    return tmp_path


def run(suite: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "CI"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "llm_provider.pytest_plugin", *arguments]
    return subprocess.run(
        command,
        cwd=suite,
        env={**environment, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **variables},
        capture_output=True,
        text=True,
    )


def test_answers_are_recorded_once_and_replayed(suite: Path, simulator: Simulator) -> None:
    recorded = run(suite)
    assert "3 passed" in recorded.stdout, recorded.stdout
    assert simulator.ledger().requests == 3
    names = sorted(path.name for path in (suite / "cassettes").iterdir())
    assert names == [f"test_suite.{test}.jsonl" for test in ("test_failing", "test_sum-1-1", "test_sum-2-2")]
    before = {path.name: path.read_bytes() for path in (suite / "cassettes").iterdir()}
    replayed = run(suite, OPENAI_API_KEY="", OPENAI_BASE_URL=os.environ["OPENAI_BASE_URL"], CI="true")
    assert "3 passed" in replayed.stdout, replayed.stdout
    assert simulator.ledger().requests == 3
    assert {path.name: path.read_bytes() for path in (suite / "cassettes").iterdir()} == before
    assert "3 passed" in run(suite, "--llm-cassettes=record").stdout
    assert simulator.ledger().requests == 6


def test_a_failed_test_leaves_no_recording(suite: Path, simulator: Simulator) -> None:
    assert "1 failed" in run(suite, "-k", "failing", FAIL="1").stdout
    assert not (suite / "cassettes").exists()


@pytest.mark.parametrize("variables", [{}, {"CI": "true"}])
def test_nothing_is_asked_where_only_replaying_is_allowed(
    suite: Path, simulator: Simulator, variables: dict[str, str]
) -> None:
    ended = run(suite, *([] if variables else ["--llm-cassettes=replay"]), **variables)
    assert "3 errors" in ended.stdout
    assert "there is no recording" in ended.stdout
    assert simulator.ledger().requests == 0
