"""Exact tests of whether answers have changed, and what they can see. No number here is drawn at random."""

import functools
import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from statistics import NormalDist

ALPHA = 0.01
"""The most false alarms of a test."""
POWER = 0.95
"""The probability with which a change is to be seen."""
USUAL_FLOOR = 0.01
"""The share of differing answers that is supposed before it is measured."""

_NORMAL = NormalDist()
_MOST_QUESTIONS = 20_000


def sum_tail(count: int, size: int, share: float) -> float:
    """The probability of `count` or more successes in `size` trials."""
    if count <= 0 or count > size or not 0 < share < 1:
        return float(count <= 0 or (count <= size and share >= 1))
    if count < size * share:  # the first term may be too small for a float
        return 1 - sum_tail(size - count + 1, size, 1 - share)
    logarithm = math.lgamma(size + 1) - math.lgamma(count + 1) - math.lgamma(size - count + 1)
    total = term = math.exp(logarithm + count * math.log(share) + (size - count) * math.log1p(-share))
    for successes in range(count, size):
        term *= (size - successes) / (successes + 1) * share / (1 - share)
        total += term
        if term < total * 1e-12:
            break
    return min(1.0, total)


@functools.lru_cache(maxsize=4096)
def find_alarm(size: int, floor: float) -> int:
    """The smallest number of differing answers that gives at most `ALPHA` false alarms."""
    counts = itertools.count(int(size * floor) + 1)
    return next(count for count in counts if sum_tail(count, size, floor) <= ALPHA)


def find_power(size: int, floor: float | None, share: float, usual: float = USUAL_FLOOR) -> float:
    """The probability of an alarm if this share of `size` answers differs; a floor of None is `usual`."""
    if floor is not None:
        return sum_tail(find_alarm(size, floor), size, share)
    changed = max(0.0, (share - usual) / (1 - usual))
    stored, new = changed * (1 - usual) + (1 - changed) * usual / 2, (1 - changed) * usual
    middle, spread = size * (stored + new), 8 * math.sqrt(size * (stored + new)) + 10
    numbers = range(max(0, int(middle - spread)), min(size, int(middle + spread)) + 1)
    tails = [sum_tail(number, size, stored + new) for number in (*numbers, numbers.stop)]
    return math.fsum(
        (above - beyond) * sum_tail(find_alarm(number, 1 / 3), number, stored / (stored + new))
        for number, (above, beyond) in zip(numbers, itertools.pairwise(tails), strict=True)
    )


def find_size(floor: float | None, share: float) -> int:
    """The fewest questions with which this share of differing answers is seen, about 20,000 at most."""
    size = 1
    while size < _MOST_QUESTIONS and find_power(size, floor, share) < POWER:
        size += max(1, size // 256)
    return size


def find_detectable(power: Callable[[float], float], least: float = 0.0) -> float | None:
    """The smallest shift that is seen with `POWER`; None if not even a shift of all would be."""
    if power(1.0) < POWER:
        return None
    low, high = least, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if power(middle) < POWER else (low, middle)
    return round(high, 9)


def compare_triples(triples: Sequence[Sequence[object]]) -> float:
    """The p-value of triples of a stored and two new answers: whether the stored one differs too often.

    Where two of three are equal and nothing has changed, each may be the third: a permutation test within
    questions.

    >>> round(compare_triples([("a", "a", "a")] * 90 + [("a", "b", "b")] * 5 + [("a", "a", "b")]), 3)
    0.018
    """
    # Values of a model class or of a list have no hash.
    uneven = [each for each in triples if sum(bool(a == b) for a, b in itertools.combinations(each, 2)) == 1]
    return sum_tail(sum(second == third for _, second, third in uneven), len(uneven), 1 / 3)


def compare_within(pairs: Sequence[tuple[Sequence[str], Sequence[str]]]) -> tuple[float, float]:
    """The shift between the answers to each question before and after, and its p-value.

    All questions have equally many answers before and after. The test is a permutation test within questions
    of the mean total variation, whose null distribution is computed. The shift is without the noise.
    """
    count, variation, squares, null = len(pairs[0][0]), 0, 0.0, {0: 1.0}
    for before, after in ((Counter(first), Counter(second)) for first, second in pairs):
        totals, sums = before + after, defaultdict[int, float](float)
        distance = sum(abs(before[answer] - after[answer]) for answer in totals)
        share = max(totals.values()) / (2 * count)
        squares += (distance / (2 * count)) ** 2 - 2 * share * (1 - share) / count
        for other, weight in _divide(tuple(sorted(totals.values())), count).items():
            for earlier, probability in null.items():
                sums[earlier + other] += weight * probability
        variation, null = variation + distance, sums
    p_value = math.fsum(weight for distance, weight in null.items() if distance >= variation)
    return math.sqrt(max(0.0, squares / len(pairs))), min(1.0, p_value)


@functools.lru_cache(maxsize=4096)
def _divide(totals: tuple[int, ...], count: int) -> Mapping[int, float]:
    """The distances of a question whose answers have these numbers, divided at random, and their weights."""
    ways: Mapping[tuple[int, int], int] = {(0, 0): 1}
    for total in totals:
        further = defaultdict[tuple[int, int], int](int)
        for (used, distance), number in ways.items():
            for first in range(min(total, count - used) + 1):
                further[used + first, distance + abs(2 * first - total)] += number * math.comb(total, first)
        ways = further
    every = math.comb(2 * count, count)
    return {distance: number / every for (used, distance), number in ways.items() if used == count}


def find_border_power(shares: Sequence[float], count: int, shift: float) -> float:
    """The probability of an alarm after a shift of each distribution, by the normal approximation.

    `shares` are those of the commonest answer to each question, which has `count` answers before and after.
    """
    (usual, deviation), (mean, spread) = _expect(shares, count, 0.0), _expect(shares, count, shift)
    return _NORMAL.cdf((mean - usual - _NORMAL.inv_cdf(1 - ALPHA) * deviation) / spread)


def _expect(shares: Sequence[float], count: int, shift: float) -> tuple[float, float]:
    """The mean and the standard deviation of the mean total variation after a shift."""
    total = variance = 0.0
    for share in shares:
        noise = math.sqrt(share * (1 - share) * 2 / count) or 1e-9
        mean = noise * math.sqrt(2 / math.pi) * math.exp(-(shift**2) / (2 * noise**2))
        mean += shift * math.erf(shift / (noise * math.sqrt(2)))
        total, variance = total + mean, variance + shift**2 + noise**2 - mean**2
    return total / len(shares), math.sqrt(max(variance, 1e-18)) / len(shares)
