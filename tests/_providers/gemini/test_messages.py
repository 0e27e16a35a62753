"""OpenAI-style messages as Gemini's contents, and answers sent back in the next turn."""

from golden import Pair, golden


@golden("gemini/messages")
def test_golden_pairs(pair: Pair) -> None:
    pair.check()
