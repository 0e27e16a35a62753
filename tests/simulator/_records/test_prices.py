"""The price list by which the ledger bills."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from llm_provider.simulator._records.prices import PriceList
from llm_provider.simulator.formats.wire_format import Usage

if TYPE_CHECKING:
    from decimal import Decimal
    from pathlib import Path

    from llm_provider.simulator import Simulator


def test_price_list(prices: Path) -> None:
    table = PriceList(prices, today="2026-11-20")

    def cost(model: str, **usage: int) -> Decimal | None:
        found = table.cost("openai", model, Usage(**usage))
        return None if found is None else found * 1_000_000

    assert cost("gpt-6.1-sol", input_tokens=10, output_tokens=1) == 30
    assert cost("tiered", input_tokens=99, output_tokens=1) == 100
    assert cost("tiered", input_tokens=100, output_tokens=1) == 303
    assert cost("tiered", input_tokens=100, cache_read_input_tokens=1) is None
    assert cost("text-embedding-3-small", input_tokens=100) == 2
    assert cost("dated", input_tokens=1) == 5
    assert cost("unknown", input_tokens=1) is None


def test_a_price_list_that_is_not_there(simulator: Simulator, tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="No such file"):
        simulator.configure(prices=str(tmp_path / "none.csv"))
