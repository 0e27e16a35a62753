"""`llm-provider logs`: what it prints of the log that `ask` keeps."""

import contextlib
import json
import sqlite3
from pathlib import Path

import pytest

from llm_provider import RequestError
from llm_provider._features.cli.logs import LogFile, LoggedAsk, log_path
from llm_provider.simulator import Simulator
from support import RunCommand


def logged_ask(prompt: str, answer: str = "yes", conversation: str = "c1", **fields: object) -> LoggedAsk:
    values = {
        "conversation": conversation,
        "time": 1.0,
        "model": "m",
        "served": "m-1",
        "provider": "p",
        "system": None,
        "prompt": prompt,
        "answer": answer,
        "messages": [{"role": "user", "content": prompt}, {"role": "assistant", "content": answer}],
        "usage": {"input_tokens": 1},
        "cost": None,
        "cached": False,
        "finish_reason": "stop",
    }
    return LoggedAsk(**(values | fields))  # type: ignore[arg-type]  # of the right types by name


@pytest.fixture
def log(tmp_path: Path) -> LogFile:
    return LogFile(tmp_path / "deep" / "logs.db")


@pytest.mark.parametrize("by_words", [True, False])
def test_a_search_finds_words_and_parts_of_words(tmp_path: Path, by_words: bool) -> None:
    log = LogFile(tmp_path / "logs.db", by_words=by_words)
    for number, prompt in enumerate(("Tell me of taxes", 'a "quoted" word', "100% of a_b", "日本の税金")):
        log.add(logged_ask(prompt, answer=f"answer {number}"))
    prompts = [ask.prompt for ask in log.latest(9)]
    assert [ask.prompt for ask in log.search("tax", 9)] == prompts[:1]
    assert [ask.prompt for ask in log.search('"quoted"', 9)] == prompts[1:2]
    assert [ask.prompt for ask in log.search("100%", 9)] == prompts[2:3]
    assert [ask.prompt for ask in log.search("税金", 9)] == prompts[3:]
    assert [ask.prompt for ask in log.search("answer", 2)] == prompts[2:]
    assert [ask.prompt for ask in log.search("%", 9)] == prompts[2:3]
    assert log.search("axb", 9) == log.search("absent", 9) == []
    if by_words:
        assert [ask.prompt for ask in log.search("taxes 0", 9)] == prompts[:1]


def test_an_index_that_was_missing_is_made(tmp_path: Path) -> None:
    path = tmp_path / "logs.db"
    LogFile(path, by_words=False).add(logged_ask("of taxes and death"))
    assert len(LogFile(path).search("death taxes", 9)) == 1


def test_the_file_of_an_older_version_gets_its_column_and_that_of_a_newer_is_refused(log: LogFile) -> None:
    log.add(logged_ask("Hi"))
    with sqlite3.connect(log.path) as database:
        database.execute("ALTER TABLE asks DROP COLUMN served_by")
        database.execute("PRAGMA user_version = 1")
    database.close()
    log.add(logged_ask("Ho", served_by={"host": "h"}))
    assert [ask.served_by for ask in log.latest(2)] == [{}, {"host": "h"}]
    with contextlib.closing(sqlite3.connect(log.path)) as database:
        database.execute("PRAGMA user_version = 9")
    with pytest.raises(RequestError, match="newer version"):
        log.latest(1)


def test_the_environment_moves_it_and_turns_it_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLM_PROVIDER_LOGS", "~/asks.db")
    assert log_path() == Path.home() / "asks.db"
    monkeypatch.setenv("LLM_PROVIDER_LOGS", "Off")
    assert log_path() is None
    monkeypatch.delenv("LLM_PROVIDER_LOGS")
    path = log_path()
    assert path is not None
    assert path.name == "logs.db"
    assert "llm_provider" in str(path)


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
