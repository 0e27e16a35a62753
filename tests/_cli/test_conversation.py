"""`llm-provider ask -c` and `-a`: what is sent before and with a question."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from llm_provider.simulator import Simulator
from support import RunCommand

MODEL = "gpt-6.1-sol"
PICTURE = b"\x89PNG\r\n\x1a\n a picture"


def test_a_question_goes_on_with_the_last_conversation(
    run: RunCommand, simulator: Simulator, tmp_path: Path
) -> None:
    run("ask", MODEL, "What is 2+2?", "--system", "Brief.")
    assert run("ask", "-c", "And 3+3?").out == "6\n"
    sent = simulator.requests()[-1].body["messages"]
    assert [(message["role"], message["content"]) for message in sent] == [
        ("system", "Brief."),
        ("user", "What is 2+2?"),
        ("assistant", "4"),
        ("user", "And 3+3?"),
    ]
    run("ask", "--continue", given=b"And 4+4?")
    assert len(simulator.requests()[-1].body["messages"]) == 6
    conversations = [json.loads(line)["conversation"] for line in run("logs", "--json").out.splitlines()]
    assert len(conversations) == 3
    assert len(set(conversations)) == 1
    assert stat.S_IMODE((tmp_path / "logs.db").stat().st_mode) == 0o600


def test_another_model_and_system_prompt_can_go_on(run: RunCommand, simulator: Simulator) -> None:
    run("ask", MODEL, "What is 2+2?", "--system", "Brief.")
    assert run("ask", "-c", "claude-haiku-5-5", "And 3+3?", "--system", "Long.").code == 0
    body = simulator.requests()[-1].body
    assert "Long." in json.dumps(body["system"])
    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "user"]


def test_a_question_that_was_asked_before_comes_from_the_cache(run: RunCommand, simulator: Simulator) -> None:
    for _ in range(2):
        run("ask", MODEL, "What is 2+2?")
        run("ask", "-c", "And 3+3?")
    assert simulator.ledger().requests == 2


def test_there_must_be_a_conversation(
    run: RunCommand, simulator: Simulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = run("ask", "-c", "And 3+3?")
    assert (ended.code, "there is no conversation to continue" in ended.err) == (2, True)
    monkeypatch.setenv("LLM_PROVIDER_LOGS", "off")
    assert "LLM_PROVIDER_LOGS turns the log off" in run("ask", "-c", "And 3+3?").err
    assert simulator.requests() == []


def test_files_are_attached_and_stay_in_the_conversation(
    run: RunCommand, simulator: Simulator, tmp_path: Path
) -> None:
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
    sent = simulator.requests()[-1].body["messages"]
    assert sent[0]["content"][1] == image
    assert run("ask", MODEL, "-a", str(notes)).code == 0
    assert "some notes" in json.dumps(simulator.requests()[-1].body["messages"])


def test_a_file_that_cannot_be_sent_is_refused(run: RunCommand, simulator: Simulator, tmp_path: Path) -> None:
    (tmp_path / "a.docx").write_bytes(b"PK\x03\x04 a document")
    for name, message in (("absent.png", "there is no file"), ("a.docx", "export an office document")):
        ended = run("ask", MODEL, "What is this?", "-a", str(tmp_path / name))
        assert (ended.code, message in ended.err) == (2, True)
    assert simulator.requests() == []
