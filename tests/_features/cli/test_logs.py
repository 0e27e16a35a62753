"""`llm-provider logs`: what it prints of the log that `ask` keeps."""

import json
from pathlib import Path

import pytest

from llm_provider.simulator import Simulator
from support import RunCommand

MODEL = "gpt-6.1-sol"


def test_answers_are_printed_and_searched(run: RunCommand, simulator: Simulator, tmp_path: Path) -> None:
    assert run("logs").err == "no answers\n"
    run("ask", MODEL, "What is 2+2?")
    run("ask", MODEL, "What is 2+2?")
    run("ask", MODEL, "Tell me of taxes")
    ended = run("logs")
    assert (ended.code, ended.err) == (0, "")
    first, second, third = ended.out.strip().split("\n\n")
    assert first.splitlines()[1:] == ["> What is 2+2?", "4"]
    assert f"  {MODEL}  $0.0" in first.splitlines()[0]
    assert "from the cache" in second
    assert third.splitlines()[1:] == ["> Tell me of taxes", "echo: Tell me of taxes"]
    assert run("logs", "-n", "1").out.strip() == run("logs", "tax").out.strip() == third
    assert run("logs", "no", "such").err == "no answers with 'no such'\n"
    entry = json.loads(run("logs", "tax", "--json").out)
    assert (entry["model"], entry["provider"], entry["cached"]) == (MODEL, "openai", False)
    assert entry["usage"]["input_tokens"] > 0
    assert run("logs", "--path").out == f"{tmp_path / 'logs.db'}\n"


def test_it_can_be_left_out_and_turned_off(
    run: RunCommand, simulator: Simulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("ask", MODEL, "What is 2+2?", "--no-log")
    monkeypatch.setenv("LLM_PROVIDER_LOGS", "off")
    run("ask", MODEL, "What is 2+2?")
    ended = run("logs")
    assert (ended.code, "turned off by LLM_PROVIDER_LOGS" in ended.err) == (2, True)
    assert not (tmp_path / "logs.db").exists()


def test_no_key_and_no_control_character(
    run: RunCommand, simulator: Simulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary-77")
    run("ask", MODEL, "a\x1b[2Jb", "--base-url", simulator.url("openai"))
    assert b"sk-canary-77" not in (tmp_path / "logs.db").read_bytes()
    assert "\x1b" not in run("logs").out


def test_a_log_that_cannot_be_read_is_an_error(run: RunCommand, tmp_path: Path, simulator: Simulator) -> None:
    (tmp_path / "logs.db").write_text("not a database, but a text that is long enough to be one")
    ended = run("logs")
    assert (ended.code, "cannot be read: file is not a database" in ended.err) == (2, True)
    ended = run("ask", MODEL, "What is 2+2?")
    assert (ended.code, ended.out) == (0, "4\n")
    assert ended.err.startswith("llm-provider: warning: the answer is not in the log ")
