"""The data of genai-prices: which models it lists, and what they cost."""

import sys

import pytest

from llm_provider._core.money.price_rows import CLOUDS
from llm_provider._core.requests.routing import ROUTES
from price_sources import needs_genai_prices
from tools.prices import genai_prices
from tools.prices.quotes import Source


@pytest.fixture(scope="module")
def genai() -> Source:
    return genai_prices.read()


@needs_genai_prices
def test_the_package_is_read_in_our_columns(genai: Source) -> None:
    standard = genai.quotes(("openai", "gpt-5.5"))["standard"][""]
    assert (standard[0]["input"], standard[272_001]["cache_read"]) == (5, 1)
    off_peak, peak = (
        genai.quotes(("deepseek", "deepseek-v4-pro"))[name] for name in ("off_peak", "standard")
    )
    assert off_peak["2026-08-17"][0]["input"] * 2 == peak["2026-08-17"][0]["input"]
    # By a declared alias, in any case of letters, and by no beginning.
    assert genai.quotes(("openrouter", "Anthropic/Claude-Sonnet-5.5-20260928"))
    assert not genai.quotes(("openai", "gpt-5.5-turbo-nonsense"))
    assert ("gemini", "claude-opus-5-5") not in genai.models
    assert ("openai", "gpt-oss-120b") not in genai.models
    # Of Bedrock by the parts of its names, but of no single region.
    regional = genai.quotes(("bedrock", "regional.anthropic.claude-opus-4-8"))
    assert regional["standard"][""][0]["input"] * 10 == 55
    assert genai.quotes(("bedrock", "au.anthropic.claude-opus-4-8")) == regional
    assert not genai.quotes(("bedrock", "eu-west-1/anthropic.claude-opus-4-8"))
    assert not [model for provider, model in genai.models if provider in {"azure", "bedrock_mantle"}]


@needs_genai_prices
def test_models_are_listed_under_the_names_of_routes(genai: Source) -> None:
    providers = {provider for provider, _ in genai_prices.listed()}
    assert {"gemini", "together_ai", "fireworks_ai", "xai"} < providers <= {*ROUTES, *CLOUDS}
    assert {provider for provider, _ in genai.models} <= providers
    assert genai.name == genai_prices.version_name()
    assert genai.name.startswith("genai-prices ")


@needs_genai_prices
def test_dated_snapshots_are_no_models_of_their_own_at_openrouter(genai: Source) -> None:
    models = {model for provider, model in genai.models if provider == "openrouter"}
    assert "anthropic/claude-sonnet-5.5" in models
    assert not {model for model in models if model.endswith(":beta") or "/" not in model}
    assert "anthropic/claude-sonnet-5.5-20260928" not in models


@needs_genai_prices
def test_no_price_is_zero_and_every_list_has_a_price_of_input(genai: Source) -> None:
    for quotes in (*genai.models.values(), *genai.spellings.values()):
        for days in quotes.values():
            for tiers in days.values():
                assert "input" in tiers[0]
                assert all(price > 0 for tier in tiers.values() for price in tier.values())


def test_without_the_package_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    # An import of a missing package meets the same.
    monkeypatch.setitem(sys.modules, "genai_prices.data", None)
    with pytest.raises(ModuleNotFoundError, match="pip install genai-prices"):
        list(genai_prices.listed())
    monkeypatch.setattr("sys.path", [])
    with pytest.raises(ModuleNotFoundError, match="pip install genai-prices"):
        genai_prices.read()
