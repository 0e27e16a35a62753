"""Response objects of the Responses API."""

from __future__ import annotations

from golden import Pair, golden


@golden("openai_responses/decode")
def test_golden_pairs(pair: Pair) -> None:
    pair.check()
