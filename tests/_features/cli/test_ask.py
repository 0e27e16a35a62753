"""`llm-provider ask`: the prompt it sends, and what it prints."""

import contextlib
import json
import os
import pty
import signal
import sqlite3
import stat
import sys
from pathlib import Path

import pytest

from llm_provider import RequestError
from llm_provider._features.cli.ask import LogFile, LoggedAsk, log_path
from llm_provider._features.cli.main import main
from llm_provider.simulator import Fault, Simulator
from support import Program, RunCommand, errors_of, wait_until

MODEL = "gpt-6.1-sol"
PICTURE = b"\x89PNG\r\n\x1a\n a picture"
STORY = "tell a story of several words, please"
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def test_the_prompt_is_an_argument_standard_input_or_both(run: RunCommand, simulator: Simulator) -> None:
    assert run("ask", MODEL, stdin="What is 2+2? Grüße\r\n\n".encode()) == (0, "4\n", "")
    assert simulator.requests()[-1].body["messages"][-1]["content"] == "What is 2+2? Grüße"
    assert run("ask", MODEL, "Sum up:", stdin=b"a\nb\n").out == "echo: Sum up:\n\na\nb\n"
    assert run("ask", MODEL, "--", "-2+5").out == "3\n"


def test_without_a_text_prompt_or_a_route_nothing_is_sent(run: RunCommand, simulator: Simulator) -> None:
    for words, stdin, message in (
        ((MODEL,), b"", "there is no prompt;"),
        ((MODEL,), b"\n", "there is no prompt;"),
        ((MODEL,), b"\xff\xfe", "standard input is not UTF-8 text: if it is "),
        ((MODEL, "lone \udcff surrogate"), b"", ""),
        (("nonsense-model", "Hi"), b"", "no route for the model name"),
    ):
        ended = run("ask", *words, stdin=stdin)
        assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
        assert ended.err.startswith(f"llm-provider: error: {message}")
    assert simulator.ledger().requests == 0


def test_a_terminal_is_not_read(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, simulator: Simulator
) -> None:
    controller, terminal = pty.openpty()
    with os.fdopen(controller, "rb"), os.fdopen(terminal, encoding="utf-8") as keyboard:
        monkeypatch.setattr(sys, "stdin", keyboard)
        assert main(["ask", MODEL]) == 2
        assert main(["ask", MODEL, "1+1"]) == 0
    assert capsys.readouterr().out == "2\n"


def test_options_reach_the_provider(run: RunCommand, simulator: Simulator) -> None:
    options = "--system Brief. --max-tokens 90 --temperature 0 --seed 7 --stop END --stop FIN --timeout 20"
    body = json.dumps({"top_k": 3})
    assert run("ask", "together_ai/zai-org/GLM-5.3", "Hi", *options.split(), "--extra-body", body).code == 0
    sent = simulator.requests()[-1].body
    assert sent["messages"][0] == {"role": "system", "content": "Brief."}
    # As programs write it, or the answer that a program has stored is paid for again.
    assert type(sent["temperature"]) is int
    expected = {"temperature": 0, "seed": 7, "stop": ["END", "FIN"], "top_k": 3, "max_tokens": 90}
    assert expected.items() <= sent.items()


def test_a_base_url_is_taken(run: RunCommand, simulator: Simulator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LOCAL_BASE_URL")
    assert run("ask", "local/tiny", "2*3", "--base-url", simulator.url("local")).out == "6\n"


def test_json_holds_the_whole_answer(run: RunCommand, simulator: Simulator) -> None:
    ended = run("ask", MODEL, "What is 2+2?", "--json")
    assert (ended.code, ended.err, ended.out.count("\n")) == (0, "", 1)
    answer = json.loads(ended.out)
    assert set(answer) == {
        "text", "finish_reason", "model", "provider", "id", "usage", "cost", "cached", "timing", "tool_calls",
        "reasoning",
    }  # fmt: skip
    assert (answer["text"], answer["finish_reason"], answer["cached"]) == ("4", "stop", False)
    assert (answer["provider"], answer["tool_calls"], answer["reasoning"]) == ("openai", [], "")
    assert answer["usage"]["output_tokens"] == 1
    assert answer["cost"] > 0
    assert answer["timing"]["attempts"] == 1
    assert not simulator.requests()[-1].body.get("stream")


def test_verbose_accounts_on_standard_error(run: RunCommand, simulator: Simulator) -> None:
    simulator.configure(cached_tokens=2, reasoning_tokens=5)
    ended = run("ask", MODEL, STORY, "--verbose")
    assert ended.out == f"echo: {STORY}\n"
    model, usage, cost, timing = ended.err.splitlines()
    assert model.split() == ["model", MODEL, "(openai)"]
    assert "input" in usage
    assert "2 read from the prompt cache" in usage
    assert "5 reasoning" in usage
    assert cost.startswith("cost    $0.0")
    assert "first token after" in timing


def test_text_is_printed_as_it_arrives(program: Program, simulator: Simulator) -> None:
    simulator.inject(Fault(stall_after=2))
    with program("ask", MODEL, STORY) as process:
        assert process.stdout is not None
        assert process.stdout.read(len("echo: tell")) == b"echo: tell"
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
        assert process.stdout.read() == b"\n"
        assert errors_of(process) == ""
    assert wait_until(lambda: simulator.ledger().disconnects == 1)


def test_a_stream_that_breaks_off_ends_its_line(run: RunCommand, simulator: Simulator) -> None:
    simulator.inject(Fault(abort_after=2), times=None)
    ended = run("ask", MODEL, STORY)
    assert (ended.code, ended.out) == (1, "echo: tell\n")
    assert ended.err.startswith("llm-provider: error: ")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("ask", MODEL, "please refuse"), "I cannot help with that.\n"),
        (("ask", MODEL, "please refuse", "--no-stream"), "I cannot help with that.\n"),
        (("ask", MODEL, STORY, "--max-tokens", "2"), "echo: te\n"),
    ],
)
def test_an_answer_that_is_not_whole_is_printed_and_reported(
    run: RunCommand, simulator: Simulator, arguments: tuple[str, ...], text: str
) -> None:
    ended = run(*arguments)
    assert (ended.code, ended.out) == (3, text)
    assert ended.err.startswith("llm-provider: warning: ")


def test_with_a_schema_the_answer_is_json(run: RunCommand, simulator: Simulator) -> None:
    ended = run("ask", MODEL, "A city?", "--schema", json.dumps(SCHEMA))
    assert (ended.code, list(json.loads(ended.out))) == (0, ["city"])
    document = json.loads(run("ask", MODEL, "A city?", "--schema", json.dumps(SCHEMA), "--json").out)
    assert document["parsed"] == json.loads(document["text"])
    assert document["cached"] is True


def test_an_answer_that_a_schema_does_not_match_is_exit_code_3(run: RunCommand, simulator: Simulator) -> None:
    simulator.inject(Fault(text="no JSON"), times=None)
    ended = run("ask", MODEL, "A city?", "--schema", json.dumps(SCHEMA))
    assert (ended.code, ended.out) == (3, "")
    assert "does not match" in ended.err
    simulator.drop_faults()
    simulator.inject(Fault(finish="content_filter"))
    ended = run("ask", MODEL, "A town?", "--schema", json.dumps(SCHEMA), "--json")
    assert (ended.code, json.loads(ended.out)["parsed"]) == (3, None)


def test_it_continues_the_last_conversation(run: RunCommand, simulator: Simulator, tmp_path: Path) -> None:
    run("ask", MODEL, "What is 2+2?", "--system", "Brief.")
    assert run("ask", "-c", "And 3+3?").out == "6\n"
    sent = simulator.requests()[-1].body["messages"]
    assert [message["role"] for message in sent] == ["system", "user", "assistant", "user"]
    assert [message["content"] for message in sent] == ["Brief.", "What is 2+2?", "4", "And 3+3?"]
    run("ask", "--continue", stdin=b"And 4+4?")
    assert len(simulator.requests()[-1].body["messages"]) == 6
    conversations = [json.loads(line)["conversation"] for line in run("logs", "--json").out.splitlines()]
    assert len(conversations) == 3
    assert len(set(conversations)) == 1
    assert stat.S_IMODE((tmp_path / "logs.db").stat().st_mode) == 0o600


def test_a_system_prompt_of_several_parts_goes_on_too(run: RunCommand, simulator: Simulator) -> None:
    parts = [{"type": "text", "text": "Brief."}, {"type": "text", "text": "Kind."}]
    run("ask", MODEL, "What is 2+2?", "--param", f"system={json.dumps(parts)}")
    assert run("ask", "-c", "And 3+3?").err == ""
    sent = simulator.requests()[-1].body["messages"]
    assert [message["content"] for message in sent] == [parts, "What is 2+2?", "4", "And 3+3?"]


def test_another_model_and_system_prompt_can_go_on(run: RunCommand, simulator: Simulator) -> None:
    run("ask", MODEL, "What is 2+2?", "--system", "Brief.")
    assert run("ask", "-c", "claude-haiku-5-5", "And 3+3?", "--system", "Long.").code == 0
    body = simulator.requests()[-1].body
    assert "Long." in json.dumps(body["system"])
    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "user"]


def test_there_must_be_a_conversation(
    run: RunCommand, simulator: Simulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = run("ask", "-c", "And 3+3?")
    assert (ended.code, "there is no conversation to continue" in ended.err) == (2, True)
    monkeypatch.setenv("LLM_PROVIDER_LOGS", "off")
    assert "LLM_PROVIDER_LOGS turns the log off" in run("ask", "-c", "And 3+3?").err
    assert simulator.requests() == []


def test_attached_files_stay_in_a_conversation(run: RunCommand, simulator: Simulator, tmp_path: Path) -> None:
    picture, notes = tmp_path / "a.png", tmp_path / "notes.txt"
    picture.write_bytes(PICTURE)
    notes.write_text("some notes")
    words = ["ask", "-a", str(picture), MODEL, "What is this?", "--attach", str(notes)]
    assert run(*words).code == 0
    text, image, file = simulator.requests()[-1].body["messages"][0]["content"]
    assert (text["text"], file["text"]) == ("What is this?", "some notes")
    assert image["image_url"]["url"].startswith("data:image/png;base64,")
    picture.unlink()
    assert run("ask", "-c", "And now?").code == 0
    assert simulator.requests()[-1].body["messages"][0]["content"][1] == image
    assert run("ask", MODEL, "-a", str(notes)).code == 0
    assert "some notes" in json.dumps(simulator.requests()[-1].body["messages"])


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


LOGGED_MODEL = "gpt-6.1-sol"


def test_answers_are_printed_and_searched(run: RunCommand, simulator: Simulator, tmp_path: Path) -> None:
    assert run("logs").err == "no answers\n"
    run("ask", LOGGED_MODEL, "What is 2+2?")
    run("ask", LOGGED_MODEL, "What is 2+2?")
    run("ask", LOGGED_MODEL, "Tell me of taxes")
    ended = run("logs")
    assert (ended.code, ended.err) == (0, "")
    first, second, third = ended.out.strip().split("\n\n")
    assert first.splitlines()[1:] == ["> What is 2+2?", "4"]
    assert f"  {LOGGED_MODEL}  $0.0" in first.splitlines()[0]
    assert "from the cache" in second
    assert third.splitlines()[1:] == ["> Tell me of taxes", "echo: Tell me of taxes"]
    assert run("logs", "-n", "1").out.strip() == run("logs", "tax").out.strip() == third
    assert run("logs", "no", "such").err == "no answers with 'no such'\n"
    entry = json.loads(run("logs", "tax", "--json").out)
    assert (entry["model"], entry["provider"], entry["cached"]) == (LOGGED_MODEL, "openai", False)
    assert entry["usage"]["input_tokens"] > 0
    assert run("logs", "--path").out == f"{tmp_path / 'logs.db'}\n"


def test_it_can_be_left_out_and_turned_off(
    run: RunCommand, simulator: Simulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("ask", LOGGED_MODEL, "What is 2+2?", "--no-log")
    monkeypatch.setenv("LLM_PROVIDER_LOGS", "off")
    run("ask", LOGGED_MODEL, "What is 2+2?")
    ended = run("logs")
    assert (ended.code, "turned off by LLM_PROVIDER_LOGS" in ended.err) == (2, True)
    assert not (tmp_path / "logs.db").exists()


def test_no_key_and_no_control_character(
    run: RunCommand, simulator: Simulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary-77")
    run("ask", LOGGED_MODEL, "a\x1b[2Jb", "--base-url", simulator.url("openai"))
    assert b"sk-canary-77" not in (tmp_path / "logs.db").read_bytes()
    assert "\x1b" not in run("logs").out


def test_a_log_that_cannot_be_read_is_an_error(run: RunCommand, tmp_path: Path, simulator: Simulator) -> None:
    (tmp_path / "logs.db").write_text("not a database, but a text that is long enough to be one")
    ended = run("logs")
    assert (ended.code, "cannot be read: file is not a database" in ended.err) == (2, True)
    ended = run("ask", LOGGED_MODEL, "What is 2+2?")
    assert (ended.code, ended.out) == (0, "4\n")
    assert ended.err.startswith("llm-provider: warning: the answer is not in the log ")


def test_max_age_is_a_time_span(run: RunCommand, simulator: Simulator) -> None:
    for more in ((), ("--max-age", "7d")):
        assert run("ask", "gpt-6.1-sol", "1+1?", *more).code == 0
    assert simulator.ledger().requests == 1
    assert run("ask", "gpt-6.1-sol", "1+1?", "--max-age", "soon").code == 2


def test_a_prompt_in_the_place_of_the_model_is_told(run: RunCommand) -> None:
    ended = run("ask", "What is 2+2?")
    assert ended.code == 2
    assert "'What is 2+2?' is no model name: the model comes first" in ended.err


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "latin-1"])
@pytest.mark.parametrize("words", [[], ["-"], ["Translate:"]])
def test_standard_input_in_another_encoding_is_not_sent(
    run: RunCommand, simulator: Simulator, encoding: str, words: list[str]
) -> None:
    ended = run("ask", MODEL, *words, stdin="caf\xe9\n".encode(encoding))
    assert (ended.code, "standard input is not UTF-8 text" in ended.err) == (2, True)
    assert "iconv -f " + ("WINDOWS-1252" if encoding == "latin-1" else "UTF-16") in ended.err
    assert simulator.ledger().requests == 0


def test_a_dash_is_standard_input(run: RunCommand, simulator: Simulator) -> None:
    assert run("ask", MODEL, "-", stdin=b"1+1?\n").out == "2\n"
    assert run("ask", "-c", "-", stdin=b"2+2?\n").out == "4\n"
    assert [each["content"] for each in simulator.requests()[-1].body["messages"]][::2] == ["1+1?", "2+2?"]


@pytest.mark.filterwarnings("always::llm_provider.PriceWarning")
def test_a_warning_stands_behind_the_line_of_the_answer(run: RunCommand, simulator: Simulator) -> None:
    """On a terminal, and with 2>&1, both go to one stream."""
    with contextlib.redirect_stderr(sys.stdout):
        ended = run("ask", "openai/gpt-77-of-no-price", "hallo", "--no-log")
    answer, said = ended.out.splitlines()
    assert (ended.code, answer) == (0, "echo: hallo")
    assert said.startswith("llm-provider: warning: openai/gpt-77-of-no-price")
