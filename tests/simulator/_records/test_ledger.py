"""What is counted, and what it would have cost."""

from decimal import Decimal
from pathlib import Path

from llm_provider.simulator import Simulator

from ..conftest import Post


def test_bills_exactly(simulator: Simulator, chat: Post, prices: Path) -> None:
    simulator.configure(prices=str(prices), cached_tokens=100, cache_write_tokens=50, output_tokens=30)
    for stream in (False, True):
        chat("openai", {"content": "x" * 4000, "stream": stream})
    expected = (850 * Decimal(2) + 100 * Decimal("0.1") + 50 * Decimal("2.5") + 30 * Decimal(10)) / 1_000_000
    assert simulator.ledger().billed == 2 * expected


def test_a_model_without_a_price_makes_the_sum_unknown(
    simulator: Simulator, chat: Post, prices: Path
) -> None:
    simulator.configure(prices=str(prices))
    chat("openai", "hi")
    chat("groq", "hi")
    ledger = simulator.ledger()
    assert ledger.model("openai", "gpt-6.1-sol").billed == Decimal("0.000022")
    assert ledger.model("groq", "gpt-6.1-sol").billed is None
    assert ledger.billed is None
