"""Chat completions of OpenAI and compatible hosts."""

from __future__ import annotations

from golden import Pair, golden


@golden("openai_chat/decode")
def test_golden_pairs(pair: Pair) -> None:
    pair.check()
