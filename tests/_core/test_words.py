"""Money, durations and times of day as people read them."""

import re
import time
from decimal import Decimal

import pytest

from llm_provider._core.words import format_clock_time, format_duration, format_usd


def test_a_moment_in_the_past_is_shown_in_local_time() -> None:
    text = format_clock_time(time.time() - 3600.0)
    assert re.fullmatch(r"\d\d:\d\d:\d\d", text)
    hour = time.localtime(time.time() - 3600.0).tm_hour
    assert int(text[:2]) in (hour, (hour - 1) % 24)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0.0 s"), (0.52, "0.5 s"), (9.94, "9.9 s"), (9.96, "10 s"), (59.4, "59 s"), (60.0, "1 min 0 s"),
        (3599.9, "1 h 0 min"), (3725.0, "1 h 2 min"), (90000.0, "25 h 0 min"),
    ],
)  # fmt: skip
def test_durations(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (0, "$0.00"), (5, "$5.00"), (1234.5, "$1,234.50"), (0.99996, "$1.00"), (0.0567, "$0.0567"),
        (0.00123456, "$0.001235"), (0.00000049, "$0.00000049"), (Decimal("1E-9"), "$0.000000001"),
        (Decimal("205.123456"), "$205.12"), (None, "unknown"),
    ],
)  # fmt: skip
def test_sums_of_money(amount: float | Decimal | None, text: str) -> None:
    assert format_usd(amount) == text


def test_a_sum_says_how_many_costs_it_lacks() -> None:
    assert (format_usd(0.5, 2), format_usd(0, 3)) == ("≥ $0.50, 2 unknown", "3 unknown")
