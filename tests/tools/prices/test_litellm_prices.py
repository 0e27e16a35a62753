"""litellm's price map: which models it lists, and what they cost."""

import sys
from pathlib import Path

import pytest

from llm_provider._requests.routing import ROUTES, Route
from price_sources import TINY, TODAY, cells, entry, price_map
from tools.prices import litellm_prices
from tools.prices.refresh import refresh


def test_the_map_is_read_in_our_columns(tmp_path: Path) -> None:
    path = price_map(
        tmp_path,
        tiny=entry(
            output_cost_per_token=1e-05,
            output_cost_per_reasoning_token=1e-05,
            cache_read_input_token_cost=1e-07,
            cache_creation_input_token_cost=2.5e-06,
            cache_creation_input_token_cost_above_1hr=4e-06,
            cache_creation_input_token_cost_above_12hr=5e-06,
            input_cost_per_audio_token=3.2e-05,
            input_cost_per_token_above_272k_tokens=4e-06,
            cache_creation_input_token_cost_above_1hr_above_272k_tokens=8e-06,
            input_cost_per_token_batches=1e-06,
            input_cost_per_token_above_272k_tokens_batches=2e-06,
            output_cost_per_token_flex=5e-06,
            search_context_cost_per_query={"search_context_size_low": 0.01, "search_context_size_high": 0.01},
        ),
    )
    source = litellm_prices.read(path, TODAY)
    assert source.name == "litellm 1.2.3"
    assert source.quotes(TINY) == {
        "standard": {
            "": {
                0: cells(
                    input=2,
                    output=10,
                    cache_read="0.1",
                    cache_write="2.5",
                    cache_write_1h=4,
                    input_audio=32,
                    web_search=10,
                ),
                272_001: cells(input=4, cache_write_1h=8, web_search=10),
            }
        },
        "batch": {"": {0: cells(input=1), 272_001: cells(input=2)}},
    }


def test_only_models_that_can_be_called_by_the_token_are_read(tmp_path: Path) -> None:
    path = price_map(
        tmp_path,
        tiny=entry(),
        openai__prefixed=entry(mode="embedding"),
        painter=entry(mode="image_generation"),
        free=entry(input_cost_per_token=0),
        elsewhere=entry("azure"),
        bygone=entry(deprecation_date="2026-11-19"),
        leaving=entry(deprecation_date=TODAY),
        family=entry(),
        **{"family-2026-01-01": entry(deprecation_date="2026-10-01")},
        size_class=entry("together_ai"),
        together_ai__org_model=entry("together_ai"),
        fireworks_ai__accounts__fireworks__models__listed=entry("fireworks_ai", source="a serverless list"),
        fireworks_ai__by_size=entry("fireworks_ai"),
        gemini__painter=entry("gemini", mode="image_generation"),
        gemini__speaker=entry("gemini", mode="audio_speech"),
        gemini__film=entry("gemini", mode="video_generation"),
    )
    source = litellm_prices.read(path, TODAY)
    assert set(source.models) == {
        TINY,
        ("openai", "prefixed"),
        ("openai", "leaving"),
        ("together_ai", "org_model"),
        ("fireworks_ai", "listed"),
        ("fireworks_ai", "by_size"),
        ("gemini", "painter"),
        ("gemini", "speaker"),
    }
    assert source.shut_down == {("openai", "bygone"), ("openai", "family-2026-01-01"), ("openai", "family")}


def test_the_clouds_regions_have_rows_where_a_wider_one_does_not_answer(tmp_path: Path) -> None:
    searches = {"search_context_cost_per_query": {"search_context_size_low": 0.01}}
    usd = {
        2: "azure/tiny azure_ai/tiny a.tiny-v1:0 global.a.tiny-v1:0 bedrock/us-east-1/a.tiny-v1:0",
        2.2: "azure/us/tiny azure/eu/tiny azure/eu/tiny-2026-01-01 us.a.tiny-v1:0 eu.a.tiny-v1:0",
        2.4: "azure/global/tiny azure/apac/tiny jp.a.tiny-v1:0 us-gov.a.tiny-v1:0 "
        "bedrock/us-gov-west-1/a.tiny-v1:0",
    }  # fmt: skip
    entries = {
        name: entry(name.split("/")[0] if "/" in name else "bedrock", input_cost_per_token=price / 1e6)
        for price, names in usd.items() for name in names.split()
    }  # fmt: skip
    entries["tiny"] = entry("vertex_ai-language-models", input_cost_per_token=9)
    entries["vertex_ai/tiny"] = entry("vertex_ai", regional_endpoint_uplift_multiplier=1.1, **searches)
    entries["vertex_ai/tiny@default"] = entry("vertex_ai", **searches)
    rows = refresh([], [litellm_prices.read(price_map(tmp_path, **entries), TODAY)], TODAY).rows
    assert " ".join(f"{row.provider}/{row.model}={row.input}" for row in rows) == (
        "azure/apac/tiny=2.4 azure/regional/tiny=2.2 azure/tiny=2 bedrock/a.tiny-v1:0=2 "
        "bedrock/jp.a.tiny-v1:0=2.4 bedrock/regional.a.tiny-v1:0=2.2 bedrock/us-gov.a.tiny-v1:0=2.4 "
        "vertex_ai/regional/tiny=2.2 vertex_ai/tiny=2"
    )
    assert {row.web_search for row in rows if row.provider == "vertex_ai"} == {10}


def test_limits_exclude_themselves_except_xais(tmp_path: Path) -> None:
    tiered = {"input_cost_per_token_above_200k_tokens": 4e-06}
    path = price_map(tmp_path, tiny=entry(**tiered), xai__tiny=entry("xai", **tiered))
    source = litellm_prices.read(path, TODAY)
    assert list(source.quotes(TINY)["standard"][""]) == [0, 200_001]
    assert list(source.quotes(("xai", "tiny"))["standard"][""]) == [0, 200_000]


def test_a_level_without_the_price_of_images_has_no_price(tmp_path: Path) -> None:
    """As text, an image would cost a tenth."""
    prices = {"output_cost_per_image_token": 6e-05, "input_cost_per_token_flex": 1e-06}
    levels = {"input_cost_per_token_batches": 1e-06, "output_cost_per_image_token_batches": 3e-05}
    painter = entry("gemini", mode="image_generation", **prices, **levels)
    source = litellm_prices.read(price_map(tmp_path, gemini__painter=painter), TODAY)
    assert set(source.quotes(("gemini", "painter"))) == {"standard", "batch"}


def test_off_peak_prices_are_a_level_of_their_own(tmp_path: Path) -> None:
    off_peak = {"input_cost_per_token": 1e-06, "windows": [{"hours_utc": "00:00-00:00", "weekdays": [6, 7]}]}
    source = litellm_prices.read(
        price_map(tmp_path, deepseek__tiny=entry("deepseek", off_peak_pricing=off_peak)), TODAY
    )
    assert source.quotes(("deepseek", "tiny"))["off_peak"] == {"": {0: cells(input=1)}}


def test_without_litellm_its_map_must_be_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.path", [])
    # Imported by another test, it would be found without its path.
    monkeypatch.delitem(sys.modules, "litellm", raising=False)
    with pytest.raises(FileNotFoundError, match="litellm is not installed; give the path"):
        litellm_prices.installed_file()


@pytest.mark.parametrize("route", ROUTES.values(), ids=list(ROUTES))
def test_every_route_is_read_under_its_name_in_the_map(route: Route) -> None:
    for name in route.litellm_names:
        listed = entry(name, source="a serverless list")
        key = litellm_prices.key_of(f"{route.litellm_names[0]}/org/tiny", listed)
        assert key == (route.provider, "org/tiny")
