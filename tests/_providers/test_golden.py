"""The golden pairs of all wire formats: what each function makes of what it is given."""

from golden import Pair, golden, subjects


@golden(*subjects())
def test_golden_pairs(pair: Pair) -> None:
    pair.check()
