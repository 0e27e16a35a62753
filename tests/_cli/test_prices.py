"""`llm-provider prices`: the table it prints."""

from __future__ import annotations

import json

import llm_provider
from support import RunCommand

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
    assert len(everything) == len(llm_provider._money.pricing.PriceTable.load())
    some = json.loads(run("prices", "--json", MODEL, "litellm/openai/gpt-6.1-sol-2026-10-21").out)
    assert some == [row for row in everything if (row["provider"], row["model"]) == ("openai", MODEL)]
