"""`llm-provider models`: the table it prints."""

import json
from pathlib import Path

import pytest

import llm_provider
from llm_provider._features.fresh_prices.update import table_path
from llm_provider.simulator import Simulator
from support import RunCommand


def test_models_are_a_table_or_json(run: RunCommand) -> None:
    ended = run("models", "haiku", "--provider", "anthropic")
    header, *rows, blank, note = ended.out.splitlines()
    assert (ended.code, blank) == (0, "")
    assert header.split()[:4] == ["name", "kind", "context", "output"]
    (row,) = (row.split() for row in rows if row.startswith("claude-haiku-4-5 "))
    assert row[1:4] == ["chat", "200,000", "64,000"]
    assert "USD per million tokens" in note
    models = json.loads(run("models", "--json", "GROQ/*120B").out)
    assert {model["provider"] for model in models} == {"groq"}
    assert all(model["name"].endswith("120b") and model["input_price"] > 0 for model in models)


def test_a_provider_is_asked_which_models_it_has(run: RunCommand, simulator: Simulator) -> None:
    assert json.loads(run("models", "--provider", "openai", "--live", "--json").out)
    assert [request.path for request in simulator.requests()] == ["/openai/v1/models"]
    assert "local/" in run("models", "--provider", "local", "--live").out


MODEL = "gpt-6.1-sol"


def test_prices_are_a_table(run: RunCommand) -> None:
    ended = run("prices", "claude-haiku-5-5")
    header, *rows, blank, note = ended.out.splitlines()
    assert ended.code == 0
    assert header.split()[:5] == ["provider", "model", "variant", "min_input_tokens", "input"]
    assert ["anthropic", "claude-haiku-5-5", "standard", "0", "0.1"] in [row.split()[:5] for row in rows]
    assert {row.split()[1] for row in rows} == {"claude-haiku-5-5"}
    assert {row.index("genai") for row in rows} == {header.index("source")}
    assert (blank, "USD per million tokens" in note) == ("", True)


def test_prices_without_a_model_are_all_prices(run: RunCommand) -> None:
    everything = json.loads(run("prices", "--json").out)
    assert len(everything) == len(llm_provider._core.money.pricing.PriceTable.load())
    some = json.loads(run("prices", "--json", MODEL, "litellm/openai/gpt-6.1-sol-2026-10-21").out)
    assert some == [row for row in everything if (row["provider"], row["model"]) == ("openai", MODEL)]


def test_hosts_and_deployments_of_the_environment_have_prices(
    run: RunCommand, simulator: Simulator, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    hosts = tmp_path / "hosts.toml"
    hosts.write_text(f'[lab]\nurls = "{simulator.url("local")}"\nprices.mine = {{ input = 7 }}\n')
    monkeypatch.setenv("LLM_PROVIDER_HOSTS", str(hosts))
    monkeypatch.setenv("LLM_PROVIDER_DEPLOYMENTS", "azure/mine=gpt-5.4, azure/old=eu/gpt-5.4")
    rows = json.loads(run("prices", "--json", "lab/mine", "azure/mine", "azure/old").out)
    assert {(row["provider"], row["model"]) for row in rows} == {
        ("lab", "mine"), ("azure", "gpt-5.4"), ("azure", "regional/gpt-5.4")
    }  # fmt: skip
    (tmp_path / "in.txt").write_text("What is 2+3?\n")
    assert run("map", "lab/mine", str(tmp_path / "in.txt"), str(tmp_path / "out.jsonl")).code == 0
    assert json.loads((tmp_path / "out.jsonl").read_text())["text"] == "5"
    monkeypatch.setenv("LLM_PROVIDER_DEPLOYMENTS", "mine=gpt-5.4")
    assert "LLM_PROVIDER_DEPLOYMENTS has 'mine'" in run("prices", "azure/mine").err


def test_prices_are_renewed_only_by_what_is_newer_and_only_from_https(run: RunCommand) -> None:
    # The packages of this environment are those of the table, or older.
    ended = run("prices", "update")
    assert (ended.code, ended.out) == (0, "the prices are those of the newest source that is installed\n")
    for arguments in (("http://127.0.0.1/prices.csv",), ("https://127.0.0.1:1/x",), ("a", "b")):
        ended = run("prices", "update", *arguments)
        assert (ended.code, ended.out) == (2, "")
        assert ended.err.count("\n") == 1


def test_fresh_prices_are_those_of_the_last_update(run: RunCommand) -> None:
    path = table_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("provider,model,input,output,source\nopenai,gpt-77,7,8,my own\n")
    path.chmod(0o600)
    assert run("prices", "openai/gpt-77").code == 2
    (row,) = json.loads(run("prices", "openai/gpt-77", "--prices", "fresh", "--json").out)
    assert (row["input"], row["output"]) == (7, 8)
