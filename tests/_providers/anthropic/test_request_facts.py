"""Facts about requests to Anthropic's Messages API."""

from __future__ import annotations

from golden import Pair, golden


@golden("anthropic/request_facts")
def test_golden_pairs(pair: Pair) -> None:
    pair.check()
