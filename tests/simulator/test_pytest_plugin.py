"""The fixture as a stranger's test suite meets it."""

import os
import subprocess
from pathlib import Path

SUITE = """
import pytest, urllib.request

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

def summarise(text):
    from llm_provider import call

    return call("gpt-6.1-sol", text).text

@pytest.mark.parametrize("number", range(2))
def test_code_under_test_asks_it_and_finds_no_answer_of_another_test(llm_simulator, number):
    assert summarise("20 + 22") == summarise("20 + 22") == "42"
    assert llm_simulator.ledger().statuses == {200: 1}
"""


def test_each_test_finds_the_simulator_cleared(warm_python: list[str], tmp_path: Path) -> None:
    (tmp_path / "test_suite.py").write_text(SUITE, encoding="utf-8")
    options = f"-m pytest -q -p llm_provider.simulator.pytest_plugin -W error -c {os.devnull}"
    command = [*warm_python, *options.split(), str(tmp_path)]
    # A user's real key and server must not be asked.
    real = {"OPENAI_API_KEY": "sk-real", "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
    environment = {**os.environ, **real, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    result = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60)
    assert "4 passed" in result.stdout, result.stdout + result.stderr
