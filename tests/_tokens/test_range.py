"""Numbers that are not known exactly."""

from llm_provider import Range


def test_ranges_add_up_and_scale() -> None:
    assert Range(1, 2, 3).plus(Range(10, 20, 30)) == (11, 22, 33)
    assert Range(1, 2, 3).times(2) == (2, 4, 6)
    assert Range(1, 2, 3).times(Range(0.5, 1, 2)) == (0.5, 2, 6)
    assert Range.exactly(7) == (7, 7, 7)
