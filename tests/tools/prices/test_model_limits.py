"""Rows of a limits file brought up to date."""

import json
from pathlib import Path

from llm_provider._core.tokens.model_limits import ModelLimits
from price_sources import TINY as KEY
from price_sources import TODAY, needs_genai_prices
from tools.prices import litellm_prices
from tools.prices.model_limits import LimitSource, read_sources, refresh_limits

ROW = ModelLimits(*KEY, 1000, 100, "a", "2026-01-01")


def test_of_two_figures_the_larger_is_taken() -> None:
    sources = [LimitSource("a", {KEY: (1000, 100)}), LimitSource("b", spellings={KEY: (1024, None)})]
    refreshed = refresh_limits({}, [KEY], sources, TODAY)
    assert refreshed.rows == refreshed.changed == [ModelLimits(*KEY, 1024, 100, "a; b", TODAY)]
    assert refreshed.differing == [(KEY, [1000, 1024])]


def test_what_holds_and_what_no_source_has_any_more_stay_and_the_second_is_told() -> None:
    held = refresh_limits({KEY: ROW}, [KEY], [LimitSource("b", {KEY: (1000, 100)})], TODAY)
    gone = refresh_limits({KEY: ROW}, [], [LimitSource("b")], TODAY)
    assert (held.rows, held.changed, gone.rows, gone.unlisted) == ([ROW], [], [ROW], [KEY])


def test_models_without_a_price_and_without_figures_get_no_row() -> None:
    source = LimitSource("a", {("openai", "unpriced"): (1000, 100)})
    assert refresh_limits({}, [KEY], [source], TODAY).rows == []


@needs_genai_prices
def test_the_price_map_of_litellm_tells_both_figures(tmp_path: Path) -> None:
    entry = {"litellm_provider": "openai", "mode": "chat", "input_cost_per_token": 1e-6}
    path = tmp_path / litellm_prices.FILE_NAME
    entries = {
        "tiny": {**entry, "max_input_tokens": 1000, "max_output_tokens": 100},
        "embedding": {**entry, "mode": "embedding", "max_input_tokens": 10, "max_output_tokens": 10},
        "sample": {**entry, "max_input_tokens": "max input tokens, if the provider specifies it"},
    }
    path.write_text(json.dumps(entries), encoding="utf-8")
    litellm, genai = read_sources(path)
    assert litellm.models == {KEY: (1000, 100), ("openai", "embedding"): (10, None)}
    assert genai.figures(("openai", "GPT-5.5")) == genai.figures(("openai", "gpt-5.5"))
    assert genai.figures(("openai", "gpt-5.5")) is not None
