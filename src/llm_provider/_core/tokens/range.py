"""A number that is not known exactly."""

from __future__ import annotations

from typing import NamedTuple


class Range(NamedTuple):
    """A number that is not known exactly. It is between `low` and `high`, and probably near `likely`.

    >>> low, likely, high = Range(1, 2, 4)
    >>> Range(1, 2, 4).plus(Range(10, 10, 10)).times(2)
    Range(low=22, likely=24, high=28)
    """

    low: float
    likely: float
    high: float

    @classmethod
    def exactly(cls, number: float) -> Range:
        """A range of one number, which is known exactly.

        >>> Range.exactly(3)
        Range(low=3, likely=3, high=3)
        """
        return cls(number, number, number)

    def plus(self, other: Range) -> Range:
        """The sum of two ranges."""
        return Range(self.low + other.low, self.likely + other.likely, self.high + other.high)

    def times(self, factor: float | Range) -> Range:
        """The product with a number, or with another range of positive numbers."""
        low, likely, high = factor if isinstance(factor, Range) else (factor, factor, factor)
        return Range(self.low * low, self.likely * likely, self.high * high)
