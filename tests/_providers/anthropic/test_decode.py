"""Anthropic's replies."""

from __future__ import annotations

from golden import Pair, golden


@golden("anthropic/decode")
def test_golden_pairs(pair: Pair) -> None:
    pair.check()
