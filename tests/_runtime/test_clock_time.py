"""Times of day and durations in words."""

from __future__ import annotations

import re
import time

import pytest

from llm_provider._runtime.clock_time import clock_time, duration


def test_a_moment_in_the_past_is_shown_in_local_time() -> None:
    shown = clock_time(3600.0)
    assert re.fullmatch(r"\d\d:\d\d:\d\d", shown)
    hour = time.localtime(time.time() - 3600.0).tm_hour
    assert int(shown[:2]) in (hour, (hour - 1) % 24)


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0.0, "0.0 s"), (0.52, "0.5 s"), (9.94, "9.9 s"), (9.96, "10 s"), (59.4, "59 s"), (60.0, "1 min 0 s"),
        (3599.9, "1 h 0 min"), (3725.0, "1 h 2 min"), (90000.0, "25 h 0 min"),
    ],
)  # fmt: skip
def test_durations(seconds: float, shown: str) -> None:
    assert duration(seconds) == shown
