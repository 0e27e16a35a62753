"""`llm-provider models`: the table it prints."""

import json

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
