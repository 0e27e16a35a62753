"""The clocks of the library: they tell the time of the system, until a simulation replaces them."""

import time
from itertools import count

import pytest

from llm_provider._limits.retry import retry_after
from llm_provider._limits.timeouts import Deadline
from llm_provider._runtime import clock


def test_the_clocks_are_those_of_the_system() -> None:
    assert {getattr(clock, name) for name in clock.__all__} == {getattr(time, name) for name in clock.__all__}


def test_a_replaced_clock_is_read_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "perf_counter", count(10.0, 1.0).__next__)
    deadline = Deadline(5.0, 15.0)
    assert [deadline.left, deadline.left] == [5.0, 4.0]
    monkeypatch.setattr(clock, "time", lambda: 0.0)
    assert retry_after({"retry-after": "Thu, 01 Jan 1970 00:00:30 GMT"}) == 30.0
