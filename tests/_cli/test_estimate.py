"""`llm-provider estimate`: what it reads and prints, with nothing sent."""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from llm_provider.simulator import Simulator
from support import RunCommand


@pytest.fixture
def run(run: RunCommand, simulator: Simulator) -> Iterator[RunCommand]:
    yield partial(run, "estimate")
    assert simulator.requests() == []


def test_lines_of_standard_input_are_prompts(run: RunCommand) -> None:
    code, out, err = run("gpt-6.1-sol", stdin="Hi\n\nGrüße\r\nHi\n".encode())
    assert (code, err) == (0, "")
    assert out.startswith("gpt-6.1-sol: 3 inputs\n")
    assert "duplicates" in out


def test_lines_of_a_file_are_prompts(run: RunCommand, tmp_path: Path) -> None:
    path = tmp_path / "prompts.txt"
    path.write_text("\ufeffone\ntwo", encoding="utf-8")
    estimate = json.loads(run("claude-haiku-5-5", str(path), "--json", "--max-tokens", "50", "--n", "2").out)
    assert (estimate["inputs"], estimate["requests"]) == (2, 4)
    assert estimate["output_tokens"]["high"] == 200
    assert estimate["cost"] == estimate["costs"]["standard"]
    assert estimate["cost"]["low"] < estimate["cost"]["likely"] < estimate["cost"]["high"]


def test_lines_of_json_are_prompts_of_any_kind(run: RunCommand, tmp_path: Path) -> None:
    path = tmp_path / "prompts.jsonl"
    conversation = [{"role": "user", "content": "Hi"}]
    lines = ["Hi", conversation, {"messages": conversation, "id": 7}, {"prompt": "Ho"}, [{"role": "nobody"}]]
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    estimate = json.loads(run("gemini-3.8-flash", str(path), "--json").out)
    assert (estimate["inputs"], estimate["duplicates"], estimate["requests"]) == (5, 2, 2)
    assert [wrong["input"] for wrong in estimate["invalid"]] == [4]
