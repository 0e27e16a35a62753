"""Files that are no price map, and lists of tiers. The rest is in golden pairs of tools/prices."""

import json
from decimal import Decimal
from pathlib import Path

import pytest

from llm_provider._features.fresh_prices import litellm_map
from price_sources import TODAY


@pytest.mark.parametrize("text", ["", "[1]", "{}", '{"tiny": 3}', '{"tiny": {"litellm_provider": 3}}', "{"])
def test_other_files_are_no_price_map(tmp_path: Path, text: str) -> None:
    path = tmp_path / "map.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"price map|Expecting"):
        litellm_map.read_models(path, TODAY)


@pytest.mark.parametrize("base", [{}, {"input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6}])
def test_a_list_of_tiers_is_read_by_the_size_of_the_prompt(tmp_path: Path, base: dict[str, float]) -> None:
    tiers = [
        {"range": [0, 32000.0], "input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6},
        {"range": [32000.0, 1e6], "input_cost_per_token": 3e-6, "output_cost_per_reasoning_token": 4e-6},
    ]
    entry = {"litellm_provider": "dashscope", "mode": "chat", **base, "tiered_pricing": tiers}
    path = tmp_path / "map.json"
    path.write_text(json.dumps({"dashscope/tiny": entry}))
    (read,) = litellm_map.read_models(path, TODAY).items()
    first, second = {"input": 1, "output": 2}, {"input": 3, "output_reasoning": 4}
    tiers_read = {
        size: {name: Decimal(price) for name, price in cells.items()}
        for size, cells in ((0, first), (32001, second))
    }
    assert read == (("dashscope", "tiny"), {"standard": {"": tiers_read}})
