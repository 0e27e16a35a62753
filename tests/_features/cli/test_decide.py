"""`llm-provider decide`: what it asks and prints."""

import json
from pathlib import Path
from typing import Any

import pytest

from decision_server import DecisionServer, draw, serving
from support import RunCommand

ASKED = ["--predicate", "It is polite.", "--choice", "What is it about?=bills, bugs", "--score", "How?=a,b,c"]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    with serving() as running:
        yield running


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "mails.txt"
    path.write_text("Pay me!\nHello\n")
    return str(path)


def test_each_question_of_each_line_is_a_row(run: RunCommand, server: DecisionServer, file: str) -> None:
    where = ["decide", "gpt-6-luna", file, "--base-url", server.root + "/v1"]
    ended = run(*where, *ASKED)
    header, *rows = ended.out.splitlines()
    assert (ended.code, header.split()) == (0, ["input", "question", "answer"])
    probability = draw("Pay me!", {"type": "predicate", "instructions": "It is polite."}, count=2)[0]
    assert rows[0].split() == ["1", "q1", f"{probability:.3f}"]
    assert [row.split()[:2] for row in rows] == [[line, f"q{n}"] for line in "12" for n in (1, 2, 3)]
    # What is stored is not asked again.
    lines = [json.loads(line) for line in run(*where, *ASKED, "--json").out.splitlines()]
    assert [(line["input"], line["name"], line["cached"]) for line in lines][:2] == [
        (1, "q1", True),
        (1, "q2", True),
    ]
    assert lines[0]["probability"] == probability
    assert list(lines[1]["probabilities"]) == ["bills", "bugs"]
    assert len(server.bodies) == 2


def test_inputs_that_fail_are_told(run: RunCommand, server: DecisionServer, file: str) -> None:
    server.fault = lambda number, body: (
        (400, {}, {"error": {"message": "no"}}) if body["input"] == "Hello" else None
    )
    ended = run("decide", "gpt-6-luna", file, "--base-url", server.root + "/v1", *ASKED, "--json")
    assert (ended.code, len(ended.out.splitlines())) == (1, 3)
    assert "input 2: no" in ended.err


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ([], "questions is empty"),
        (["--choice", "What?"], "expected QUESTION=OPTION,OPTION"),
        (["--score", "What?=a"], "has 1 levels"),
        (["--predicate", "x", "--draws", "3"], "draws belongs to --method sampled"),
        (["--predicate", "x", "--method", "best"], "method"),
    ],
)
def test_wrong_usage_sends_nothing(
    run: RunCommand, server: DecisionServer, file: str, options: list[str], problem: str
) -> None:
    ended = run("decide", "gpt-6-luna", file, "--base-url", server.root + "/v1", *options)
    assert (ended.code, problem in ended.err) == (2, True)
    assert not server.bodies
