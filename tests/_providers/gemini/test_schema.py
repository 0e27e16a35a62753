"""Schemas for Gemini's `responseJsonSchema`, by the two rules of its reference."""

from __future__ import annotations

from golden import Pair, golden


@golden("gemini/schema")
def test_golden_pairs(pair: Pair) -> None:
    pair.check()
