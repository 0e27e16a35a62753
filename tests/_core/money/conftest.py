"""A ledger with a row of every kind."""

from decimal import Decimal

import pytest

from llm_provider import Ledger, Usage
from llm_provider._core.money.totals import Key, Posting, Totals

SOL = Key("openai", "gpt-6.1-sol", "gpt-6.1-sol-2026-10-21", "ablation")
HAIKU = Key("anthropic", "claude-haiku-5-5", "claude-haiku-5-5", "")


@pytest.fixture
def totals() -> Totals:
    """The sums of two models: answers, a hit, and failures of known and of unknown cost."""
    totals = Totals()
    used = Usage(
        input_tokens=1200, output_tokens=300, cache_read_input_tokens=200, reasoning_output_tokens=100
    )
    for second in range(3):
        totals.post(Posting(1.79e9 + 60 * second, "answered", SOL, Decimal("0.0054"), used))
    totals.post(Posting(1.79e9, "hit", SOL, Decimal("0.0054"), used))
    totals.post(Posting(1.79e9, "failed", SOL, Decimal("0.001"), Usage(input_tokens=10)))
    totals.post(Posting(1.79e9, "failed", SOL, None, None, Decimal("0.5")))
    totals.post(Posting(1.79e9 + 90, "answered", HAIKU, Decimal("0.00000006"), Usage(input_tokens=1)))
    return totals


@pytest.fixture
def ledger(totals: Totals) -> Ledger:
    """The same as a user reads it."""
    return Ledger(totals)
