"""`llm-provider estimate`: what it reads and prints, with nothing sent."""

import json
import os
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


@pytest.mark.parametrize("has_prices", [False, True])
def test_a_model_that_the_table_lacks_has_the_prices_of_a_file(
    has_prices: bool, run: RunCommand, tmp_path: Path
) -> None:
    path = tmp_path / "prices.csv"
    path.write_text("provider,model,input,output\nopenai,gpt-99-new,2,8\n")
    option = ["--prices", str(path)] if has_prices else []
    result = run("openai/gpt-99-new", "--json", "--max-tokens", "50", *option, stdin=b"Hi")
    assert (json.loads(result.out)["cost"] is not None) == has_prices
    assert not os.environ.get("LLM_PROVIDER_PRICES")


def test_a_file_of_prices_that_is_missing_is_named(run: RunCommand, tmp_path: Path) -> None:
    code, _, err = run("gpt-6.1-sol", "--prices", str(tmp_path / "missing.csv"), stdin=b"Hi")
    assert code != 0
    assert "missing.csv" in err
