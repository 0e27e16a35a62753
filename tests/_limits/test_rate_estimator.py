"""The rate estimator: it keeps its rate, learns the limit from marks, and forgets old marks."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_provider._limits.rate_estimator import Mark, RateEstimator, Ticket


def ticket(number: int, at: float, *, rate: float = 10.0, phase: float = 1.0, tokens: float = 1.0) -> Ticket:
    return Ticket(number, at, 1, tokens, number * tokens, rate, phase)


def mark(number: int = 0, at: float = 0.0, *, fresh: bool = False, in_flight: int = 0) -> Mark:
    return Mark(number, at, float(number), fresh=fresh, rate=math.inf, in_flight=in_flight)


def beside_others() -> RateEstimator:
    """An estimator after five refusals on time and an early one."""
    estimator = swept(10.0)
    on_time(estimator, 5)
    estimator.learn(ticket(516, 52.0, phase=0.1), mark(505, 50.0), 1.0, 1.0)
    return estimator


def swept(estimate: float) -> RateEstimator:
    """An estimator that was limited at twice the estimate."""
    estimator = RateEstimator()
    estimator.close(2 * estimate)
    assert estimator.estimate == estimate
    return estimator


@given(st.floats(0.5, 500), st.floats(0, 0.015))
def test_as_many_are_sent_as_the_rate_says(estimate: float, lateness: float) -> None:
    estimator, now, sent = swept(estimate), 0.0, 0
    expected = 0.0
    while sent < 300:
        rate = estimator.rate
        ready = estimator.ready_at(now, 1.0)
        later = ready + lateness if ready > now else now
        expected += rate * (later - now)
        now = later
        estimator.spend(now, 1.0)
        sent += 1
    # Two requests of slack, and what the rate changes between two sends.
    assert sent == pytest.approx(expected, rel=0.05, abs=3)


def test_the_first_two_seconds_stay_below_what_a_doubling_allows() -> None:
    estimator, now, sent = RateEstimator(), 0.0, 0
    while now < 2.0:
        estimator.spend(now, 1.0)
        sent += 1
        now = max(now, estimator.ready_at(now, 1.0))
    assert 150 < sent < 240  # 80/s · 2 s / ln 2 = 231


def test_what_is_not_used_does_not_raise_the_rate() -> None:
    estimator, rate = swept(10.0), None
    for number in range(100):
        estimator.spend(number * 5.0, 1.0)
        rate = rate or estimator.rate
    assert estimator.rate == rate


def test_marks_on_time_are_averaged_and_narrow_the_step() -> None:
    estimator, widths = swept(9.0), []
    for number in range(1, 8):
        estimator.learn(
            ticket(number * 101, number * 10.0), mark((number - 1) * 101, (number - 1) * 10.0), 1.0, 1.0
        )
        widths.append(estimator.estimate - estimator.rate)
    assert estimator.estimate == pytest.approx(10.0, rel=0.01)
    assert all(later <= earlier * 1.01 for earlier, later in itertools.pairwise(widths))
    assert widths[-1] == pytest.approx(0.02 * estimator.estimate, rel=0.7)


def on_time(estimator: RateEstimator, count: int, *, seconds: float = 10.0, requests: int = 101) -> None:
    for number in range(count):
        before = mark(number * requests, number * seconds)
        estimator.learn(ticket((number + 1) * requests, (number + 1) * seconds), before, 1.0, 1.0)


def test_an_early_mark_widens_the_step_and_each_further_one_takes_from_the_rate() -> None:
    estimator = swept(10.0)
    on_time(estimator, 5)
    narrow, before = estimator.estimate - estimator.rate, estimator.estimate
    estimator.learn(ticket(516, 52.0, phase=0.1), mark(505, 50.0), 1.0, 1.0)
    assert estimator.estimate == pytest.approx(before, rel=0.05), "one alone may be chance"
    assert estimator.estimate - estimator.rate > 5 * narrow
    rates = []
    for number in range(6):
        early = ticket(527 + 11 * number, 53.0 + number, phase=0.1)
        estimator.learn(early, mark(516 + 11 * number, 52.0 + number), 1.0, 1.0)
        rates.append(estimator.estimate)
    assert all(later == pytest.approx(0.73 * earlier) for earlier, later in itertools.pairwise(rates))


def test_while_refusals_come_by_chance_nothing_is_averaged() -> None:
    """Early and late ones by turns: as long as three in a row are not due, the rate goes up and down."""
    estimator = swept(10.0)
    on_time(estimator, 5)
    for number in range(40):
        phase = (0.2, 1.0, 1.2, 1.9)[number % 4]
        before = estimator.estimate
        refused = ticket(600 + 50 * number, 60 + 5.0 * number, phase=phase, rate=1.5 * before)
        estimator.learn(refused, mark(551 + 50 * number, 55 + 5.0 * number), 1.0, 1.0)
        assert estimator.rate == pytest.approx(0.7 * estimator.estimate), "the step stays wide"
        assert (estimator.estimate < before) == (phase < 1) or phase == 1.0


def test_three_refusals_in_a_row_that_were_due_end_the_following() -> None:
    estimator, widths = beside_others(), []
    for number in range(5):
        before = mark(516 + 101 * number, 52 + 10.0 * number)
        estimator.learn(ticket(617 + 101 * number, 62 + 10.0 * number), before, 1.0, 1.0)
        widths.append(1 - estimator.rate / estimator.estimate)
    assert widths[:2] == pytest.approx([0.3, 0.3])
    assert widths[2] > widths[3] > widths[4]


def test_whoever_is_refused_is_slow_to_send_again_only_beside_others() -> None:
    alone, shared = swept(10.0), beside_others()
    for estimator in (alone, shared):
        estimator.resume(60.0, 1.0)
    assert alone.ready_at(60.0, 1.0) == 60.0
    assert shared.ready_at(60.0, 1.0) == pytest.approx(60 + 1 / shared.rate)


def sweep_time(estimator: RateEstimator) -> float:
    """Seconds from the next request until the sweep has spent its savings."""
    now = start = estimator.ready_at(1e4, 1.0)
    estimator.resume(now, 1.0)
    while estimator.phase < 1:
        now = estimator.ready_at(now, 1.0)
        estimator.spend(now, 1.0)
    return now - start


def test_after_a_fall_the_sweeps_are_short() -> None:
    """A limit that was four times as high a while ago is looked for more often than one that never was."""
    fallen, steady = swept(20.0), swept(5.0)
    on_time(fallen, 5, requests=201)
    fallen.estimate = 5.0
    for estimator in (fallen, steady):
        on_time(estimator, 8, requests=51)
    assert sweep_time(fallen) < 0.5 * sweep_time(steady)


def test_one_short_interval_never_takes_more_than_its_share() -> None:
    estimator = swept(100.0)
    estimator.learn(ticket(3, 30.0, phase=0.1), mark(1, 0.0), 1.0, 1.0)
    assert estimator.estimate == pytest.approx(40.0)


def test_a_late_mark_lies_between_what_was_accepted_and_the_rate_that_was_reached() -> None:
    estimator = swept(10.0)
    estimator.learn(ticket(500, 30.0, rate=40.0, phase=3.0), mark(1, 0.0), 1.0, 1.0)
    assert estimator.estimate == pytest.approx(math.sqrt(498 / 30 * 40))


def test_a_rate_that_is_not_refused_when_due_grows_without_bound() -> None:
    estimator, now = swept(1.0), 0.0
    for _ in range(2000):
        now = max(now, estimator.ready_at(now, 1.0))
        estimator.spend(now, 1.0)
    assert estimator.rate > 20
    assert math.isfinite(estimator.rate)


def test_what_idling_had_saved_up_cannot_raise_the_estimate() -> None:
    estimator = swept(10.0)
    estimator.learn(ticket(101, 2.0), mark(0, 0.0, fresh=True), 1.0, 1.0)
    assert estimator.estimate == 10.0
    estimator.learn(ticket(202, 22.0), mark(101, 2.0, fresh=True), 1.0, 1.0)
    assert estimator.estimate == pytest.approx(5.0)


def test_refused_requests_that_use_the_limit_are_seen_by_none_getting_through() -> None:
    for refused, used in ((10, 10), (3, 0)):
        before = Mark(0, 0.0, 0.0, fresh=False, rate=11.0, in_flight=10)
        for number in range(1, refused + 1):
            before.count(ticket(number, 0.1))
        assert before.count_refused_use(10.0) == used


@pytest.mark.parametrize(
    ("by_tokens", "refused", "then"),
    [
        (False, [3.0, 1.0, 4.0, 2.0, 0.5, 3.0], True),
        (False, [1.0, 0.2, 3.0, 0.1, 0.5, 1.2] * 9, False),
        (True, [0.1, 0.3, 0.2, 0.8, 0.1] * 4, False),
        (True, [1.0, 0.2, 3.0, 0.1, 0.5, 1.2] * 9, True),
    ],
    ids=["large ones: tokens", "any: still requests", "small ones: requests", "any: still tokens"],
)
def test_what_is_refused_tells_what_the_limit_is_of(
    by_tokens: bool, refused: list[float], then: bool
) -> None:
    estimator = swept(10.0)
    estimator.by_tokens = by_tokens
    for number, tokens in enumerate(refused, 1):
        at, sent = number * 10.0, number * 101
        before = Mark(sent - 101, at - 10, sent - 101.0, fresh=False, rate=10.0, in_flight=0)
        estimator.learn(Ticket(sent, at, 1, tokens, sent + tokens - 1, 10.0, 1.0), before, 1.0, 1.9)
    assert estimator.by_tokens == then


def test_requests_of_one_size_are_counted_as_requests() -> None:
    estimator = swept(10.0)
    on_time(estimator, 50)
    assert not estimator.by_tokens


@given(
    st.lists(
        st.tuples(st.floats(0, 100), st.integers(1, 1000), st.floats(0, 5), st.floats(0.01, 1000)),
        max_size=60,
    )
)
def test_whatever_happens_the_rate_stays_positive_and_finite(
    marks: list[tuple[float, int, float, float]],
) -> None:
    estimator, at, number = swept(10.0), 0.0, 0
    for seconds, requests, phase, rate in marks:
        before = mark(number, at)
        at, number = at + seconds, number + requests
        estimator.learn(ticket(number, at, rate=rate, phase=phase), before, 1.0, 1.0)
        assert 0 < estimator.rate <= estimator.estimate < math.inf


def test_estimates_stay_within_bounds_however_long_it_goes_on() -> None:
    for phase, rate in ((0.0, 1.0), (9.0, 1e300)):
        estimator = swept(10.0)
        for number in range(2000):
            estimator.learn(
                ticket(number + 2, number + 1.0, rate=rate, phase=phase), mark(number + 1, 0.0), 1.0, 1.0
            )
        assert 0 < estimator.rate <= estimator.estimate <= 1e5
        assert estimator.estimate >= 1 / 60
