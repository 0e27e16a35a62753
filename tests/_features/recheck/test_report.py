"""`Recheck`: its outcome, by identifiers and p-values, and its text."""

from functools import partial
from random import Random
from typing import Any

import pytest

from llm_provider import Recheck, Results
from llm_provider._features.recheck.report import (
    ALPHA,
    compare_within,
    find_alarm,
    find_detectable,
    find_power,
    find_size,
    sum_tail,
)


@pytest.mark.parametrize(
    ("p_value", "detectable", "days_off", "outcome"),
    [
        (0.5, 0.05, 0, "same"),
        (0.5, None, 0, "undecided"),
        (None, 0.05, 0, "undecided"),
        (0.01, 0.05, 2, "suspected"),
        (0.01, 0.05, 3, "changed"),
    ],
)
def test_the_outcome_follows_from_the_test(
    p_value: float | None, detectable: float | None, days_off: int, outcome: str
) -> None:
    figures: dict[str, Any] = {"p_value": p_value, "detectable": detectable, "estimate": 0.0}
    plan = Recheck(model="m", kind="border", draw=1, time=0.0, persistence=3, **figures)
    assert "planned" in str(plan)
    report = plan.conclude({}, Results(), days_off)
    assert (report.outcome, str(report).splitlines()[0]) == (outcome, f"m: {outcome}")


@pytest.mark.parametrize(
    ("floor", "share", "size", "alarm"), [(0.01, 0.1, 76, 4), (0.01, 0.2, 30, 3), (0.1, 0.3, 57, 12)]
)
def test_sizes_have_the_power_and_no_smaller_do(floor: float, share: float, size: int, alarm: int) -> None:
    assert (find_size(floor, share), find_alarm(size, floor)) == (size, alarm)
    assert sum_tail(alarm, size, floor) <= ALPHA
    assert find_power(size, floor, share) >= 0.95 > find_power(size - 1, floor, share)


def test_border_prompts_show_a_shift_and_raise_few_false_alarms() -> None:
    random = Random(1)

    def draw(share: float) -> list[str]:
        return ["yes" if random.random() < share else "no" for _ in range(30)]

    def count_alarms(shift: float) -> int:
        runs = [[(draw(0.6), draw(0.6 - shift)) for _ in range(20)] for _ in range(100)]
        return sum(compare_within(pairs)[1] <= ALPHA for pairs in runs)

    assert count_alarms(0.0) <= 4
    assert count_alarms(0.2) >= 95


@pytest.mark.parametrize("floor", [None, 0.01])
@pytest.mark.parametrize("questions", [5, 60, 5000])
def test_a_plan_says_how_many_more_prompts_a_difference_takes(questions: int, floor: float | None) -> None:
    power = partial(find_power, questions, floor)
    detectable = find_detectable(power, 0.01)
    figures: dict[str, Any] = {"questions": questions, "floor": floor, "detectable": detectable}
    text = str(Recheck(model="m", kind="stored", draw=1, time=0.0, **figures))
    more = find_size(floor, 0.05) - questions
    assert (f"a difference of 5.0% takes {more:,} more prompts" in text) == (more > 0)
    assert ("more prompts" in text) == (detectable is None or detectable > 0.05)
