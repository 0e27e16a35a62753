"""Exact tests of whether answers have changed, and what they can see. No number here is drawn at random.

Where the floor is known, the share of answers that differ although nothing has changed, the test is the
binomial tail of the answers that differ. Where it is measured, by several new answers to each question, each
way to divide the answers to a question is as likely: a permutation test within questions, whose null
distribution is computed.
"""

from __future__ import annotations

import bisect
import functools
import itertools
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from statistics import NormalDist
from typing import Any, NamedTuple

POWER = 0.95
"""The probability with which a change is to be seen."""

_NORMAL = NormalDist()
_MOST_QUESTIONS = 20_000


def sum_tail(count: int, size: int, share: float) -> float:
    """The probability of `count` or more successes in `size` trials.

    >>> round(sum_tail(2, 93, 0.001), 4), round(sum_tail(2, 93, 0.05), 3)
    (0.004, 0.95)
    """
    if count <= 0 or count > size or not 0 < share < 1:
        return float(count <= 0 or (count <= size and share >= 1))
    logarithm = math.lgamma(size + 1) - math.lgamma(count + 1) - math.lgamma(size - count + 1)
    term = math.exp(logarithm + count * math.log(share) + (size - count) * math.log1p(-share))
    total = term
    for successes in range(count, size):
        term *= (size - successes) / (successes + 1) * share / (1 - share)
        total += term
        if term < total * 1e-12 and successes > size * share:
            break
    return min(1.0, total)


@functools.lru_cache(maxsize=4096)
def find_alarm(size: int, floor: float, alpha: float) -> int:
    """The smallest number of differing answers that gives at most `alpha` false alarms.

    >>> find_alarm(93, 0.001, 0.01), find_alarm(234, 0.01, 0.01)
    (2, 7)
    """
    count = int(size * floor) + 1
    while sum_tail(count, size, floor) > alpha:
        count += 1
    return count


def power_of_counts(size: int, floor: float | None, share: float, alpha: float, guess: float = 0.01) -> float:
    """The probability of an alarm if this share of `size` answers differs.

    A floor of None is measured by a second new answer to each question, and supposed to be `guess`.

    >>> round(power_of_counts(93, 0.001, 0.05, 0.01), 3), round(power_of_counts(585, None, 0.05, 0.01), 3)
    (0.95, 0.999)
    """
    if floor is not None:
        return sum_tail(find_alarm(size, floor, alpha), size, share)
    # Of three answers that differ, two are equal: the third is the stored one, or one of the new ones.
    changed = max(0.0, (share - guess) / (1 - guess))
    stored, new = changed * (1 - guess) + (1 - changed) * guess / 2, (1 - changed) * guess
    middle, spread = size * (stored + new), 8 * math.sqrt(size * (stored + new)) + 10
    numbers = range(max(0, int(middle - spread)), min(size, int(middle + spread)) + 1)
    tails = [sum_tail(number, size, stored + new) for number in (*numbers, numbers.stop)]
    return math.fsum(
        (above - beyond) * sum_tail(find_alarm(number, 1 / 3, alpha), number, stored / (stored + new))
        for number, (above, beyond) in zip(numbers, itertools.pairwise(tails), strict=True)
    )


def find_size(floor: float | None, share: float, alpha: float) -> int:
    """The fewest questions with which this share of differing answers is seen, at most 20,000.

    >>> [find_size(floor, share, 0.01) for floor, share in ((0.001, 0.05), (0.01, 0.05), (None, 0.05))]
    [93, 234, 314]
    """

    def is_seen(size: int) -> bool:
        return power_of_counts(size, floor, share, alpha) >= POWER

    high = 8
    while high < _MOST_QUESTIONS and not is_seen(high):
        high *= 2
    high = min(high, _MOST_QUESTIONS)
    if floor is not None and high <= 1024:
        # The power of an exact test is a sawtooth, so a smaller size may do.
        return next(filter(is_seen, range(1, high)), high)
    return 1 + bisect.bisect_left(range(1, high), True, key=is_seen)


def find_detectable(power: Callable[[float], float], least: float = 0.0) -> float | None:
    """The smallest shift that is seen with `POWER`; None if not even a shift of all would be."""
    return _solve(power, POWER, least, 1.0) if power(1.0) >= POWER else None


def find_interval(count: int, size: int) -> tuple[float, float]:
    """The exact 95 % interval (Clopper and Pearson) of a share.

    >>> [round(end, 3) for end in find_interval(5, 93)]
    [0.018, 0.121]
    """
    low = _solve(lambda share: sum_tail(count, size, share), 0.025, 0.0, 1.0) if count else 0.0
    return low, _solve(
        lambda share: sum_tail(count + 1, size, share), 0.975, 0.0, 1.0
    ) if count < size else 1.0


def compare_within(pairs: Sequence[tuple[Counter[Any], Counter[Any]]]) -> tuple[float, float]:
    """The mean total variation between the answers to each question before and after, and its p-value.

    Each question has the same number of answers before, and the same number after.

    >>> variation, p_value = compare_within([(Counter(a=15, b=15), Counter(a=9, b=21))] * 20)
    >>> round(variation, 3), p_value < 0.001
    (0.2, True)
    """
    before, after = (sum(counts.values()) for counts in pairs[0])
    divisor, seen, null = math.gcd(before, after), 0, {0: 1.0}
    for first, second in pairs:
        totals = first + second
        seen += sum(abs(first[each] * after - second[each] * before) for each in totals) // divisor
        if len(totals) > 1:
            sums: dict[int, float] = {}
            for distance, weight in _divide(tuple(sorted(totals.values())), before, after).items():
                for other, share in null.items():
                    sums[distance + other] = sums.get(distance + other, 0.0) + weight * share
            null = sums
    p_value = math.fsum(weight for distance, weight in null.items() if distance >= seen)
    return seen * divisor / (2 * before * after * len(pairs)), min(1.0, p_value)


@functools.lru_cache(maxsize=4096)
def _divide(totals: tuple[int, ...], before: int, after: int) -> Mapping[int, float]:
    """The distances of a question whose answers have these numbers, divided at random, and their weights."""
    ways: dict[tuple[int, int], int] = {(0, 0): 1}
    for total in totals:
        further: dict[tuple[int, int], int] = {}
        for (used, distance), count in ways.items():
            for number in range(min(total, before - used) + 1):
                gap = abs(number * after - (total - number) * before) // math.gcd(before, after)
                state = used + number, distance + gap
                further[state] = further.get(state, 0) + count * math.comb(total, number)
        ways = further
    every = math.comb(before + after, before)
    return {distance: count / every for (used, distance), count in ways.items() if used == before}


class Variation(NamedTuple):
    """The normal approximation of the mean total variation of many answers.

    `commonest` has the share of the commonest answer to each question.

    >>> [round(Variation((0.6,) * 20, 30, 30).power(shift, 0.01), 2) for shift in (0.1, 0.2)]
    [0.32, 0.99]
    """

    commonest: Sequence[float]
    before: int
    after: int

    def power(self, shift: float, alpha: float) -> float:
        """The probability of an alarm after a shift of the distribution of each question."""
        (usual, deviation), (mean, spread) = self._expect(0.0), self._expect(shift)
        return _NORMAL.cdf((mean - usual - _NORMAL.inv_cdf(1 - alpha) * deviation) / spread)

    def find_shift(self, variation: float) -> tuple[float, float, float]:
        """The shift that makes this mean total variation likely, and the ends of its 95 % interval."""

        def invert(mean: float) -> float:
            least = self._expect(0.0)[0]
            return 0.0 if mean <= least else _solve(lambda shift: self._expect(shift)[0], mean, 0.0, 1.0)

        margin = _NORMAL.inv_cdf(0.975) * self._expect(invert(variation))[1]
        return invert(variation), invert(variation - margin), invert(variation + margin)

    def _expect(self, shift: float) -> tuple[float, float]:
        """The mean and the standard deviation after a shift."""
        total = variance = 0.0
        for share in self.commonest:
            noise = math.sqrt(share * (1 - share) * (1 / self.before + 1 / self.after)) or 1e-9
            mean = noise * math.sqrt(2 / math.pi) * math.exp(-(shift**2) / (2 * noise**2))
            mean += shift * math.erf(shift / (noise * math.sqrt(2)))
            total, variance = total + mean, variance + shift**2 + noise**2 - mean**2
        return total / len(self.commonest), math.sqrt(max(variance, 1e-18)) / len(self.commonest)


def _solve(function: Callable[[float], float], value: float, low: float, high: float) -> float:
    """Where an increasing function has a value, within bounds."""
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if function(middle) < value else (low, middle)
    return high
