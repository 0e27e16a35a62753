"""What is counted, and what it would have cost."""

from __future__ import annotations

import dataclasses
from decimal import Decimal
from typing import TYPE_CHECKING

from llm_provider.simulator import Fault

if TYPE_CHECKING:
    from pathlib import Path

    from llm_provider.simulator import Simulator

    from ..conftest import Post


def test_counts(simulator: Simulator, chat: Post) -> None:
    for _ in range(3):
        chat("openai", "What is 1+1?")
    simulator.inject(Fault(status=500))
    chat("groq", {"model": "m"})
    chat("groq", {"messages": []})
    ledger = simulator.ledger()
    assert (ledger.requests, ledger.answered, ledger.faults) == (5, 3, 1)
    assert ledger.statuses == {200: 3, 500: 1, 400: 1}
    assert ledger.requests_by_provider == {"openai": 3, "groq": 2}
    assert (ledger.in_flight, ledger.peak_in_flight, ledger.connections) == (0, 1, 5)
    assert [(one.provider, one.model, one.requests) for one in ledger.models] == [
        ("openai", "gpt-6.1-sol", 3)
    ]
    assert (ledger.input_tokens, ledger.output_tokens) == (9, 3)
    assert ledger.model("groq", "m").requests == 0
    assert ledger.billed is None
    simulator.clear()
    assert dataclasses.replace(simulator.ledger(), models=()).requests == 0


def test_bills_exactly(simulator: Simulator, chat: Post, prices: Path) -> None:
    simulator.configure(prices=str(prices), cached_tokens=100, cache_write_tokens=50, output_tokens=30)
    for stream in (False, True):
        chat("openai", {"content": "x" * 4000, "stream": stream})
    expected = (850 * Decimal(2) + 100 * Decimal("0.1") + 50 * Decimal("2.5") + 30 * Decimal(10)) / 1_000_000
    assert simulator.ledger().billed == 2 * expected


def test_only_what_was_answered_is_billed(simulator: Simulator, chat: Post, prices: Path) -> None:
    simulator.configure(prices=str(prices), require_key="right")
    assert chat("openai", "hi").status == 401
    assert simulator.ledger().billed == 0
    assert chat("openai", "hi", {"authorization": "Bearer right"}).status == 200
    assert simulator.ledger().billed == Decimal("0.000022")


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
