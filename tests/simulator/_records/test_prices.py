"""The price list by which the ledger bills."""

from decimal import Decimal
from pathlib import Path

from llm_provider.simulator._records.prices import PriceList
from llm_provider.simulator.formats.wire_format import Usage


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
