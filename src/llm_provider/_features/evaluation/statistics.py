"""Means of scores by questions, their intervals at 95 %, and tests: formulas, and the sources that they have.

The unit is the question. A mean is the mean of the questions' means, so that each question weighs the same,
and its standard error is the cluster-robust one with the factor G / (G - 1) for G clusters (Cameron and
Miller, Journal of Human Resources 50 (2015), 317; for evaluations Miller, arXiv:2411.00640). Where each
question is a cluster, this is the standard deviation of the questions' means over the root of their number.
"""

import functools
import math
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from statistics import NormalDist, fmean
from typing import NamedTuple

from ..._core import doors


class Mean(NamedTuple):
    """A mean of questions. Without two clusters there is no `error` and often no `interval`."""

    value: float
    error: float | None
    interval: tuple[float, float] | None
    questions: int
    clusters: int
    samples: int


def average(values: Sequence[float]) -> float:
    """The mean, also of values whose sum no float can hold."""
    try:
        return fmean(values)
    except OverflowError:
        return math.fsum(value / len(values) for value in values)


def measure(questions: Mapping[Hashable, Sequence[float]], clusters: Mapping[Hashable, Hashable]) -> Mean:
    """The mean of questions, by their samples, at least one each; `clusters` has the cluster of each.

    The interval of a share, whose samples are all 0 or 1, is Wilson's with the effective number of samples
    (Dean and Pagano, Journal of Survey Statistics and Methodology 3 (2015), 484, after Korn and Graubard,
    Survey Methodology 24 (1998), 193). With one sample of each question it is Wilson's own. That of any other
    mean is Student's; there is none if all clusters are equal, because nothing tells how much they vary.

    >>> mean = measure({"a": [1, 1], "b": [0, 1], "c": [1, 0]}, {"a": 1, "b": 2, "c": 3})
    >>> round(mean.value, 4), round(mean.error, 4), [round(bound, 3) for bound in mean.interval]
    (0.6667, 0.1667, [0.208, 0.939])
    """
    most = max(abs(sample) for each in questions.values() for sample in each)
    if most and not 1e-100 < most < 1e100:
        # Squares would be beyond a float: measure in thirds of the largest, which leave no share of 0 and 1.
        parts = {name: [3 * (sample / most) for sample in each] for name, each in questions.items()}
        scaled = measure(parts, clusters)
        bounds = scaled.interval and (scaled.interval[0] / 3 * most, scaled.interval[1] / 3 * most)
        error = None if scaled.error is None else scaled.error / 3 * most
        return scaled._replace(value=scaled.value / 3 * most, error=error, interval=bounds)
    means = {name: fmean(samples) for name, samples in questions.items()}
    value, count = fmean(means.values()), len(means)
    sums: defaultdict[Hashable, list[float]] = defaultdict(list)
    for name, mean in means.items():
        sums[clusters[name]].append(mean - value)
    groups, samples = len(sums), sum(map(len, questions.values()))
    error = None
    if groups > 1:
        squares = math.fsum(math.fsum(each) ** 2 for each in sums.values())
        error = math.sqrt(groups / (groups - 1) * squares) / count
        # What is left of equal values is rounding.
        error = 0.0 if error < 1e-12 * max(map(abs, means.values())) else error
    interval = None
    if all(sample in (0, 1) for each in questions.values() for sample in each):
        if groups == samples:
            interval = doors.calibration.find_interval(value * count, count)
        elif error is not None:
            # Kish's effective number of clusters: all there is if their samples repeat each other.
            least = count**2 / sum(len(each) ** 2 for each in sums.values())
            size = least if value in (0, 1) else float(samples)
            if error and value not in (0, 1):
                size = min(size, value * (1 - value) / error**2)
            shrunk = size * (find_quantile(samples - 1) / find_quantile(groups - 1)) ** 2
            size = max(shrunk, min(size, least))
            interval = doors.calibration.find_interval(value * size, size)
    elif error:
        half = find_quantile(groups - 1) * error
        interval = (value - half, value + half)
    return Mean(value, error, interval, count, groups, samples)


def find_p_value(value: float, error: float, freedom: int) -> float:
    """The probability of a mean at least as far from 0, on both sides, by Student's distribution.

    Student's sleep data, as R's manual of `t.test` has them:

    >>> round(find_p_value(-1.58, 0.38895799, 9), 6)
    0.002833
    """
    square = (value / error) ** 2
    share = square / (freedom + square)
    return _incomplete_beta(freedom / 2, 0.5, 1 - share, share)


@functools.cache
def find_quantile(freedom: int) -> float:
    """The number of standard errors in half an interval of 95 %, by Student's distribution.

    >>> [round(find_quantile(freedom), 3) for freedom in (1, 9, 100)]
    [12.706, 2.262, 1.984]
    """
    low, high = 1.9, 13.0
    while high - low > 1e-12:
        middle = (low + high) / 2
        low, high = (middle, high) if find_p_value(middle, 1.0, freedom) > 0.05 else (low, middle)
    return (low + high) / 2


def count_questions(difference: float, variance: float, power: float) -> int:
    """How many questions show a difference at 5 %, with so much power, where each varies by `variance`.

    It is the formula of Miller, arXiv:2411.00640, with the variance of the paired differences.

    >>> count_questions(0.03, 1 / 9, 0.8), count_questions(0.06, 1 / 9, 0.8)
    (969, 243)
    """
    normal = NormalDist()
    quantiles = normal.inv_cdf(0.975) + normal.inv_cdf(power)
    return max(2, math.ceil(quantiles**2 * variance / difference**2))


def _incomplete_beta(a: float, b: float, x: float, rest: float) -> float:
    """The incomplete beta function, regularised, by the fraction of DLMF 8.17.22. `rest` is 1 - x."""
    if x > (a + 1) / (a + b + 2):
        return 1 - _incomplete_beta(b, a, rest, x)
    if not x:
        return 0.0
    logarithm = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log(rest)
    fraction, numerator, denominator = 1.0, 1.0, 0.0
    for step in range(10_000):
        half = step // 2
        if step == 0:
            term = 1.0
        elif step % 2:
            term = -(a + half) * (a + b + half) * x / ((a + 2 * half) * (a + 2 * half + 1))
        else:
            term = half * (b - half) * x / ((a + 2 * half - 1) * (a + 2 * half))
        denominator = 1 / ((1 + term * denominator) or 1e-300)
        numerator = (1 + term / numerator) or 1e-300
        fraction *= numerator * denominator
        if abs(numerator * denominator - 1) < 1e-15:
            break
    return math.exp(logarithm) / a * (fraction - 1)
