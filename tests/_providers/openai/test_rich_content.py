"""Citations, images, audio and server tools in the shapes of OpenAI's SDK and of compatible hosts."""

from __future__ import annotations

from golden import Pair, golden


@golden("openai/rich_content")
def test_golden_pairs(pair: Pair) -> None:
    pair.check()
