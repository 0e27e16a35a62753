"""What another provider has no form for is left out, and each kind of it is named once."""

from __future__ import annotations

from golden import Pair, golden


@golden("shared/earlier_answers")
def test_golden_pairs(pair: Pair) -> None:
    pair.check()
