"""Facts about requests to Gemini's `generateContent`."""

from __future__ import annotations

from golden import Pair, golden


@golden("gemini/request_facts")
def test_golden_pairs(pair: Pair) -> None:
    pair.check()
