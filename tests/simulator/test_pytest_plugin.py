"""The fixture as a stranger's test suite meets it."""

import os
import subprocess
from pathlib import Path

SUITE = """
import urllib.request

def ask(simulator):
    body = b'{"model": "m", "messages": [{"role": "user", "content": "1+1"}]}'
    with urllib.request.urlopen(simulator.url("openai") + "/chat/completions", body, timeout=60) as answer:
        return answer.read()

def test_one(llm_simulator):
    llm_simulator.configure(answer="changed")
    assert b"changed" in ask(llm_simulator)
    assert llm_simulator.ledger().requests == 1

def test_other(llm_simulator):
    assert b'"2"' in ask(llm_simulator)
    assert llm_simulator.ledger().requests == 1
"""


def test_each_test_finds_the_simulator_cleared(warm_python: list[str], tmp_path: Path) -> None:
    (tmp_path / "test_suite.py").write_text(SUITE, encoding="utf-8")
    options = f"-m pytest -q -p llm_provider.simulator.pytest_plugin -W error -c {os.devnull}"
    command = [*warm_python, *options.split(), str(tmp_path)]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    result = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60)
    assert "2 passed" in result.stdout, result.stdout + result.stderr
