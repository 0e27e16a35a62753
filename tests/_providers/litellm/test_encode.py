"""The keyword arguments of litellm."""

from __future__ import annotations

from golden import Pair, golden


@golden("litellm/encode")
def test_golden_pairs(pair: Pair) -> None:
    pair.check()
