"""Numbers that are not known exactly."""

from __future__ import annotations

import pickle

from llm_provider import Range


def test_ranges_add_up_and_scale() -> None:
    assert Range(1, 2, 3).plus(Range(10, 20, 30)) == (11, 22, 33)
    assert Range(1, 2, 3).times(2) == (2, 4, 6)
    assert Range(1, 2, 3).times(Range(0.5, 1, 2)) == (0.5, 2, 6)
    assert Range.exactly(7) == (7, 7, 7)


def test_a_range_is_a_value_like_any_other() -> None:
    low, likely, high = number = Range(1, 2, 3)
    assert (low, likely, high) == (1, 2, 3)
    assert pickle.loads(pickle.dumps(number)) == number
    assert repr(number) == "Range(low=1, likely=2, high=3)"
