"""Citations and server tools in the shapes of Anthropic's SDK."""

from __future__ import annotations

from golden import Pair, golden


@golden("anthropic/rich_content")
def test_golden_pairs(pair: Pair) -> None:
    pair.check()
