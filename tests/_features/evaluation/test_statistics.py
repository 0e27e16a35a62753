"""Against published values, an integral of the density, and the sandwich of a regression on a constant."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from llm_provider._features.decide.calibration import find_interval
from llm_provider._features.evaluation.statistics import (
    Mean,
    count_questions,
    find_p_value,
    find_quantile,
    measure,
)

SLEEP = (
    (0.7, 1.9), (-1.6, 0.8), (-0.2, 1.1), (-1.2, 0.1), (-0.1, -0.1), (3.4, 4.4), (3.7, 5.5), (0.8, 1.6),
    (0.0, 4.6), (2.0, 3.4),
)  # fmt: skip
"""Student, Biometrika 6 (1908), 20: hours of sleep that two drugs gave ten patients; R's data set `sleep`."""


def by_question(samples: list[list[float]], clusters: list[int] | None = None) -> Mean:
    questions = dict(enumerate(samples))
    return measure(questions, dict(enumerate(clusters or range(len(samples)))))


def test_student_s_paired_test_is_that_of_r() -> None:
    mean = by_question([[left - right] for left, right in SLEEP])
    assert mean.error is not None
    assert mean.interval is not None
    assert mean.value == pytest.approx(-1.58)
    assert mean.value / mean.error == pytest.approx(-4.0621, abs=5e-5)
    assert find_p_value(mean.value, mean.error, 9) == pytest.approx(0.002833, abs=5e-7)
    assert mean.interval == pytest.approx((-2.4598858, -0.7001142), abs=5e-8)


@pytest.mark.parametrize(
    ("freedom", "quantile"),
    [(1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (5, 2.571), (9, 2.262), (29, 2.045), (100, 1.984)],
)  # fmt: skip
def test_quantiles_are_those_of_the_table_in_nist_s_handbook(freedom: int, quantile: float) -> None:
    """NIST/SEMATECH e-Handbook of Statistical Methods, section 1.3.6.7.2."""
    assert find_quantile(freedom) == pytest.approx(quantile, abs=5e-4)


@pytest.mark.parametrize("freedom", [1, 2, 3, 7, 30, 200, 5_000, 100_000])
@pytest.mark.parametrize("value", [0.0, 1e-6, 0.3, 1.0, 2.5, 6.0])
def test_p_values_are_integrals_of_the_density(freedom: int, value: float) -> None:
    points = np.linspace(0, value, 20_001)
    constant = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2) - 0.5 * math.log(freedom * math.pi)
    density = np.exp(constant - (freedom + 1) / 2 * np.log1p(points**2 / freedom))
    inner = np.trapezoid(density, points)
    assert find_p_value(value, 1.0, freedom) == pytest.approx(1 - 2 * inner, abs=1e-8)
    assert find_p_value(-value, 1.0, freedom) == find_p_value(value, 1.0, freedom)


@pytest.mark.parametrize(
    ("hits", "total", "interval"),
    [
        (81, 263, (0.2553, 0.3662)), (15, 148, (0.0624, 0.1605)), (0, 20, (0.0, 0.1611)),
        (1, 29, (0.0061, 0.1718)),
    ],
)  # fmt: skip
def test_a_share_with_one_sample_has_the_intervals_that_newcombe_published(
    hits: int, total: int, interval: tuple[float, float]
) -> None:
    """Newcombe, Statistics in Medicine 17 (1998), 857, table I, method 3."""
    mean = by_question([[1.0]] * hits + [[0.0]] * (total - hits))
    assert mean.interval == pytest.approx(interval, abs=5e-5)


SAMPLES = st.lists(
    st.lists(st.floats(-100, 100, allow_subnormal=False), min_size=1, max_size=4), min_size=2, max_size=12
)
SHARES = st.lists(st.lists(st.sampled_from([0.0, 1.0]), min_size=1, max_size=5), min_size=2, max_size=12)


@given(SAMPLES, st.data())
def test_the_error_is_that_of_a_regression_on_a_constant(
    samples: list[list[float]], data: st.DataObject
) -> None:
    """The sandwich of Liang and Zeger, as matrices, with the factor of few clusters."""
    clusters = data.draw(st.lists(st.integers(0, 3), min_size=len(samples), max_size=len(samples)))
    assume(len(set(clusters)) > 1)
    mean = by_question(samples, clusters)
    y = np.array([np.mean(each) for each in samples])
    x = np.ones((len(y), 1))
    bread = np.linalg.inv(x.T @ x)
    residuals = y - x @ (bread @ x.T @ y)
    meat = np.zeros((1, 1))
    for cluster in set(clusters):
        own = np.array(clusters) == cluster
        score = x[own].T @ residuals[own]
        meat += np.outer(score, score)
    groups = len(set(clusters))
    variance = (groups / (groups - 1) * bread @ meat @ bread)[0, 0]
    assert mean.value == pytest.approx(y.mean(), abs=1e-9)
    assert mean.error == pytest.approx(math.sqrt(max(0.0, variance)), rel=1e-6, abs=1e-6)


@given(SAMPLES | SHARES)
def test_the_order_does_not_matter_and_one_sample_repeated_changes_nothing(
    samples: list[list[float]],
) -> None:
    mean, turned = by_question(samples), by_question(samples[::-1])
    assert turned.value == pytest.approx(mean.value)
    assert turned.error == pytest.approx(mean.error, abs=1e-9)
    if mean.interval is not None:
        assert turned.interval == pytest.approx(mean.interval, abs=1e-9)
    copied = by_question([each * 2 for each in samples])
    assert copied.value == pytest.approx(mean.value)
    assert copied.error == pytest.approx(mean.error, abs=1e-9)


@given(SHARES)
def test_the_interval_of_a_share_contains_it_and_stays_between_0_and_1(samples: list[list[float]]) -> None:
    mean, mirrored = by_question(samples), by_question([[1 - sample for sample in each] for each in samples])
    assert mean.interval is not None
    assert mirrored.interval is not None
    low, high = mean.interval
    assert -1e-12 <= low <= mean.value + 1e-12
    assert mean.value - 1e-12 <= high <= 1 + 1e-12
    assert mirrored.interval == pytest.approx((1 - high, 1 - low), abs=1e-9)


@given(st.lists(st.sampled_from([0.0, 1.0]), min_size=1, max_size=30))
def test_with_one_sample_a_share_has_wilson_s_interval(samples: list[float]) -> None:
    mean = by_question([[sample] for sample in samples])
    assert mean.interval == pytest.approx(find_interval(sum(samples), len(samples)))


@given(st.floats(-1e6, 1e6, allow_subnormal=False), st.integers(1, 9))
def test_equal_scores_tell_no_interval(value: float, count: int) -> None:
    """0 and 1 do: they are shares."""
    assume(value not in (0, 1))
    mean = by_question([[value] * 3] * count)
    assert mean.interval is None
    assert mean.error in (None, 0.0)


@given(st.integers(2, 12), st.integers(1, 5))
def test_samples_that_repeat_their_question_tell_no_more_than_one(count: int, copies: int) -> None:
    for hits in range(count + 1):
        answers = [[float(index < hits)] for index in range(count)]
        repeated = by_question([each * copies for each in answers]).interval
        once = by_question(answers).interval
        assert once is not None
        assert repeated is not None
        # The error of few clusters has the factor G / (G - 1), which Wilson's interval does not have.
        if hits in (0, count):
            assert repeated == pytest.approx(once)
        else:
            assert repeated[0] <= once[0] + 1e-9
            assert repeated[1] >= once[1] - 1e-9


@pytest.mark.parametrize(("share", "alike"), [(0.5, 0.3), (0.8, 0.3), (0.95, 0.7)])
@pytest.mark.parametrize(("questions", "samples"), [(5, 3), (10, 3), (30, 5)])
def test_nine_of_ten_intervals_and_more_hold_the_true_share(
    share: float, alike: float, questions: int, samples: int
) -> None:
    """Samples of a question are alike. At 0.95 Student's interval holds it half as often."""
    draw, held, runs = np.random.default_rng(7), 0, 150
    weight = 1 / alike - 1
    for _ in range(runs):
        easy = draw.beta(share * weight, (1 - share) * weight, questions)
        drawn = draw.random((questions, samples)) < easy[:, None]
        interval = by_question(drawn.astype(float).tolist()).interval
        assert interval is not None
        held += interval[0] <= share <= interval[1]
    assert held >= 0.89 * runs


@pytest.mark.parametrize(
    ("build", "clusters"), [(lambda: [[1.0]], 1), (lambda: [[0.5]], 1), (lambda: [[1.0, 0.0]], 1)]
)
def test_one_question_has_no_error(build: Callable[[], list[list[float]]], clusters: int) -> None:
    mean = by_question(build())
    assert mean.error is None
    assert mean.clusters == clusters


def test_so_many_questions_show_the_difference_with_the_power() -> None:
    """Drawn again and again, the test sees the difference as often as promised."""
    variance, difference = 0.25, 0.1
    count = count_questions(difference, variance, 0.8)
    draw = np.random.default_rng(1)
    seen = 0
    for _ in range(2_000):
        sample = draw.normal(difference, math.sqrt(variance), count)
        error = sample.std(ddof=1) / math.sqrt(count)
        seen += abs(sample.mean() / error) > find_quantile(count - 1)
    assert seen / 2_000 == pytest.approx(0.8, abs=0.03)


@pytest.mark.parametrize("power", [-1040, -700, -334, 334, 700, 1020])
def test_scores_of_any_size_have_the_numbers_of_their_thousandths(power: int) -> None:
    """A power of two changes no digit, and the squares of these are beyond a float."""
    scores = {name: [value, 3.0] for name, value in enumerate((1.0, 0.0, 2.5, -2.0))}
    clusters = dict.fromkeys(scores, "a") | {3: "b"}
    plain = measure(scores, clusters)
    far = measure(
        {name: [math.ldexp(value, power) for value in each] for name, each in scores.items()}, clusters
    )
    assert plain.interval is not None
    assert far.interval is not None
    for found, value in zip(far[:2] + far.interval, plain[:2] + plain.interval, strict=True):
        assert found == pytest.approx(math.ldexp(value or 0.0, power), rel=1e-9)
    assert far[3:] == plain[3:]


def test_large_zeros_and_ones_are_no_share() -> None:
    mean = measure({"a": [0.0], "b": [1e300], "c": [1e300]}, {"a": 1, "b": 2, "c": 3})
    assert mean.interval is not None
    assert mean.interval[0] < 0 < 1e300 < mean.interval[1]
