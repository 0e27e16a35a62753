"""Which format serves a call of OpenAI or a compatible host."""

from __future__ import annotations

from golden import Pair, golden


@golden("openai/adapter")
def test_golden_pairs(pair: Pair) -> None:
    pair.check()
