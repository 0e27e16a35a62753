"""What a recheck can see, and what it saw: `Recheck`, and its tests, which are exact and draw no number."""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from statistics import NormalDist
from typing import Any, Literal, TypeAlias

from ..._core.json_values import json_value
from ..._core.types.response import Result
from ..._core.types.results import Results
from ..._core.types.usage import Cost

Served: TypeAlias = Mapping[str, list[str]]
"""The values of each field of `served_by`."""

_IDENTITY = ("host", "model", "snapshot", "quantization", "engine")
"""Fields whose new values mean that something else answers. Others, such as fingerprints, may alternate."""

_WORDS = {
    "stored": ("of answers differ", "are not stored, or cannot be asked as they were"),
    "border": ("shift of the first token", "have one first token"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Recheck:
    """Whether a model still answers as before: what a test can see, and what it saw. `print` shows a table.

    `outcome` is "planned" for a dry run; "same" if nothing has changed that the test can see; "suspected" if
    a difference has not persisted for `persistence` days; "changed"; "reference" if the answers are those
    with which later ones are compared; "undecided" if nothing was compared.

    `questions` of those `available` are asked, with so many new `answers` to each; `left_out` cannot be.
    Shifts are shares of answers that differ; for border prompts, shifts of the first token's distribution.
    `floor` is the known shift without a change; None if it is measured. `detectable` is the smallest shift
    that is seen with a power of 0.95. `expected_cost` is in USD. With the same `draw`, a recheck continues.

    `answered` questions have all of their answers. `estimate` is the shift that was seen, and `noise` the
    share of questions whose new answers differ. A `p_value` up to 0.01 is a difference, which `days_off` days
    in a row have. `before` and `after` have the values of `served_by`, and `new` those that were not there
    before. `failed` says how many of the new answers are errors, and why the first one is.
    """

    model: str
    kind: Literal["stored", "border"]
    outcome: Literal["planned", "same", "suspected", "changed", "reference", "undecided"] = "planned"
    draw: int
    time: float
    available: int = 0
    left_out: int = 0
    questions: int = 0
    answers: int = 0
    floor: float | None = None
    detectable: float | None = None
    expected_cost: float | None = None
    answered: int = 0
    noise: float | None = None
    estimate: float | None = None
    p_value: float | None = None
    before: Served = field(default_factory=dict)
    after: Served = field(default_factory=dict)
    new: Served = field(default_factory=dict)
    days_off: int = 0
    persistence: int = 1
    cost: float = 0.0
    failed: str = ""

    @property
    def is_off(self) -> bool:
        """Whether the difference is significant."""
        return self.p_value is not None and self.p_value <= ALPHA

    def conclude(self, before: Served, results: Results[Result], days_off: int | None = None) -> Recheck:
        """The report after the answers; `LLMError`, the first one, if all calls failed."""
        if results and not results.ok:
            raise results.errors[0]
        days_off = int(self.is_off) if days_off is None else days_off
        after = list_served(results)
        pairs = ((name, sorted({*after[name]} - {*before[name]})) for name in before.keys() & after.keys())
        new = {name: values for name, values in sorted(pairs) if values}
        report = replace(self, before=before, after=after, new=new, days_off=days_off, cost=results.cost)
        if results.errors:
            share = f"{len(results.errors):,} of {len(results):,} new answers"
            report = replace(report, failed=f"{share}; the first: {results.errors[0]}")
        if new.keys() & {*_IDENTITY} or (self.is_off and days_off >= self.persistence):
            return replace(report, outcome="changed")
        if self.is_off:
            return replace(report, outcome="suspected")
        is_blind = self.p_value is None or self.detectable is None
        return replace(report, outcome="undecided" if is_blind else "same")

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON-ready values."""
        fields: dict[str, Any] = json_value(asdict(self))
        return fields

    def __str__(self) -> str:
        what, reason = _WORDS[self.kind]
        lines = [(name, f"{values}, before {self.before[name]}") for name, values in self.new.items()]
        others = f"; {self.left_out:,} others {reason}" if self.left_out else ""
        share = f"{self.questions:,} of {self.available:,} prompts"
        lines += [(self.kind, f"{share}, new answers to each: {self.answers}{others}")]
        noise = "measured" if self.floor is None else f"{self.floor:.2%}, as given"
        least = "no change" if self.detectable is None else f"{self.detectable:.1%} {what}"
        rates = f"with a power of 0.95; false alarms at most {ALPHA:.0%}; noise {noise}"
        lines += [("can see", f"{least}, {rates}")]
        if self.kind == "stored" and (self.detectable or 1.0) > _SMALL:
            more = find_size(self.floor, _SMALL) - self.questions
            lines += [("", f"a difference of {_SMALL:.1%} takes {more:,} more prompts")] * (more > 0)
        if self.p_value is not None:
            noise = "" if self.noise is None else f"; noise {self.noise:.1%}"
            days = f"; {self.days_off} of {self.persistence} days" if self.persistence > 1 else ""
            rates = f"{self.answered:,} answered; p = {self.p_value:.2g}{noise}{days}"
            lines += [("saw", f"{self.estimate:.1%} {what}; {rates}")]
        lines += [("failed", self.failed)] * bool(self.failed)
        cost = f"about {Cost.of([self.expected_cost])}" if self.outcome == "planned" else str(self.cost)
        lines += [("cost", cost), ("draw", str(self.draw))]
        return f"{self.model}: {self.outcome}" + "".join(f"\n  {name:12}{text}" for name, text in lines)


def list_served(results: Results[Any]) -> Served:
    """The values of each field of `served_by`, without the fields of the request."""
    served = [response.served_by.to_dict() for response in results.ok if response.served_by]
    names = {name for each in served for name in each} - {"request_id"}
    return {name: sorted({each[name] for each in served if name in each}) for name in sorted(names)}


ALPHA = 0.01
"""The most false alarms of a test."""
POWER = 0.95
"""The probability with which a change is to be seen."""
USUAL_FLOOR = 0.01
"""The share of differing answers that is supposed before it is measured."""

_SMALL = 0.05
"""The share of differing answers that a recheck detects by default."""

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

    `shares` has the share of the commonest answer to each question, with `count` answers before and after.
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
