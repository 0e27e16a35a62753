"""Facts about requests to Chat Completions, its many hosts, and the Responses API."""

from __future__ import annotations

from golden import Pair, golden


@golden("openai/facts")
def test_golden_pairs(pair: Pair) -> None:
    pair.check()
