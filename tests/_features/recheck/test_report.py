"""`Recheck`: its outcome, by identifiers and p-values, and its text."""

from typing import Any

import pytest

from llm_provider import Recheck, Results


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
