"""Citations, images, audio and server tools in the shapes of google-genai."""

from __future__ import annotations

from golden import Pair, golden


@golden("gemini/rich_content")
def test_golden_pairs(pair: Pair) -> None:
    pair.check()
