"""`llm-provider estimate` and `llm-provider recheck`: what they read and print."""

import csv
import gzip
import json
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from llm_provider import Client
from llm_provider.simulator import Simulator
from support import RunCommand


@pytest.fixture
def estimate(run: RunCommand, simulator: Simulator) -> Iterator[RunCommand]:
    yield partial(run, "estimate")
    assert simulator.requests() == []


def test_lines_of_standard_input_are_prompts(estimate: RunCommand) -> None:
    code, out, err = estimate("gpt-6.1-sol", stdin="Hi\n\nGrüße\r\nHi\n".encode())
    assert (code, err) == (0, "")
    assert out.startswith("gpt-6.1-sol: 3 inputs, 1 duplicate\n")
    assert "1 duplicate" in out


def test_lines_of_a_file_are_prompts(estimate: RunCommand, tmp_path: Path) -> None:
    path = tmp_path / "prompts.txt"
    path.write_text("\ufeffone\ntwo", encoding="utf-8")
    options = ("--json", "--max-tokens", "50", "--n", "2")
    result = json.loads(estimate("claude-haiku-5-5", str(path), *options).out)
    assert (result["inputs"], result["requests"]) == (2, 4)
    assert result["output_tokens"]["high"] == 200
    assert result["cost"] == result["costs"]["standard"]
    assert result["cost"]["low"] < result["cost"]["likely"] < result["cost"]["high"]


def test_lines_of_json_are_prompts_of_any_kind(estimate: RunCommand, tmp_path: Path) -> None:
    path = tmp_path / "prompts.jsonl"
    conversation = [{"role": "user", "content": "Hi"}]
    lines = ["Hi", conversation, {"messages": conversation, "id": 7}, {"prompt": "Ho"}, [{"role": "nobody"}]]
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    result = json.loads(estimate("gemini-3.8-flash", str(path), "--json").out)
    assert (result["inputs"], result["duplicates"], result["requests"]) == (5, 2, 2)
    assert [wrong["input"] for wrong in result["invalid"]] == [4]


ROWS = [{"id": str(number), "text": f"line one\nline two, {number % 3}"} for number in range(4)]


def write_rows(path: Path) -> None:
    """The rows in the form of the file's name."""
    if path.suffix == ".parquet":
        import pandas

        pandas.DataFrame(ROWS).to_parquet(path)
        return
    with (gzip.open if path.suffix == ".gz" else open)(path, "wt", encoding="utf-8", newline="") as file:
        if "jsonl" in path.name:
            file.writelines(json.dumps(row) + "\n" for row in ROWS)
            return
        table = csv.DictWriter(file, ["id", "text"], delimiter="\t" if "tsv" in path.name else ",")
        table.writeheader()
        table.writerows(ROWS)


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.jsonl", "a.CSV.gz", "a.parquet"])
@pytest.mark.parametrize(
    ("options", "duplicates"), [((), 1), (("--column", "id"), 0), (("--template", "Say: {text}"), 1)]
)
def test_an_estimate_has_the_rows_of_map(
    name: str,
    options: tuple[str, ...],
    duplicates: int,
    run: RunCommand,
    simulator: Simulator,
    tmp_path: Path,
) -> None:
    write_rows(tmp_path / name)
    arguments = ["gpt-6.1-sol", str(tmp_path / name), *options, "--max-tokens", "50"]
    result = json.loads(run("estimate", *arguments, "--json").out)
    assert (result["inputs"], result["duplicates"]) == (len(ROWS), duplicates)
    code, out, _ = run("map", *arguments, "--dry-run")
    shown = run("estimate", *arguments).out
    assert code == 0
    assert shown.splitlines()[:6] == out.splitlines()[:6]
    assert simulator.requests() == []


def test_a_table_without_a_prompt_says_what_it_has(estimate: RunCommand, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("question,id\nHi,1\n")
    code, _, err = estimate("gpt-6.1-sol", str(tmp_path / "a.csv"))
    assert code == 2
    assert "name one with --column, or give a --template; it has: question, id" in err


@pytest.mark.parametrize("has_prices", [False, True])
def test_a_model_that_the_table_lacks_has_the_prices_of_a_file(
    has_prices: bool, estimate: RunCommand, tmp_path: Path
) -> None:
    path = tmp_path / "prices.csv"
    path.write_text("provider,model,input,output\nopenai,gpt-99-new,2,8\n")
    option = ["--prices", str(path)] if has_prices else []
    result = estimate("openai/gpt-99-new", "--json", "--max-tokens", "50", *option, stdin=b"Hi")
    assert (json.loads(result.out)["cost"] is not None) == has_prices
    assert not os.environ.get("LLM_PROVIDER_PRICES")


def test_a_file_of_prices_that_is_missing_is_named(estimate: RunCommand, tmp_path: Path) -> None:
    code, _, err = estimate("gpt-6.1-sol", "--prices", str(tmp_path / "missing.csv"), stdin=b"Hi")
    assert code != 0
    assert "missing.csv" in err


SUMS = [f"What is {number} + 1?" for number in range(100)]


def test_the_command_prints_plan_and_report(
    run: RunCommand, client: Client, simulator: Simulator, tmp_path: Path
) -> None:
    client.call_many("gpt-6.1-sol", SUMS, max_tokens=50)
    prompts, history = tmp_path / "prompts.txt", tmp_path / "h.jsonl"
    prompts.write_text("\n".join(SUMS))
    model, options = ("recheck", "gpt-6.1-sol"), ("--budget", "0.5", "--max-tokens", "50", "--floor", "0.001")
    ended = run(*model, str(prompts), *options, "--dry-run")
    assert (ended.code, ended.err, simulator.ledger().requests) == (0, "", 100)
    assert "gpt-6.1-sol: planned" in ended.out
    ended = run(*model, str(prompts), *options, "--json")
    assert (ended.code, json.loads(ended.out)["outcome"]) == (0, "same"), ended
    assert "plan: can see 5.0% of answers differ" in ended.err
    stored = run("recheck", "gpt-6.1-sol", "--budget", "0.5", "--floor", "0.001", "--json")
    assert (stored.code, json.loads(stored.out)["available"]) == (0, 100), stored
    assert run("recheck", "gpt-6.1-sol", "--budget", "0.5", "--tag", "study").code == 2
    simulator.configure("openai", changed=0.3)
    assert run(*model, str(prompts), *options).code == 1
    simulator.configure("groq", border=1.0)
    border = ("recheck", "groq/gemma2-9b-it", "--budget", "0.5", "--history", str(history))
    assert run(*border).code == 0, "the first recheck is the reference"
    assert run(*border).code == 0
    assert run(*model, str(prompts)).code == 2, "--budget is missing"
    assert run("recheck", "groq/other", str(prompts), "--budget", "1").code == 2


def test_recheck_lists_no_option_that_it_refuses(run: RunCommand) -> None:
    assert "--fallback" in run("ask", "--help").out
    assert "--fallback" not in run("recheck", "--help").out
