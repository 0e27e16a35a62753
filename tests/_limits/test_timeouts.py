"""Timeouts and deadlines: what is accepted. How they are kept is in test_attempt and test_engine."""

from __future__ import annotations

import math
import pickle
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_provider import Client, RequestError, Timeouts, call
from llm_provider._limits.timeouts import DEFAULT_TIMEOUTS, Deadline

NAMES = ("connect", "first_byte", "idle", "total")
limits = st.builds(
    Timeouts, **dict.fromkeys(NAMES, st.none() | st.floats(0, exclude_min=True, allow_infinity=False))
)


class TestTimeouts:
    @pytest.mark.parametrize("name", NAMES)
    @pytest.mark.parametrize("value", [0, -1, math.inf, math.nan, 10**400, True, "5", b"", [3]])
    def test_what_is_no_time_is_refused_by_name(self, name: str, value: Any) -> None:
        with pytest.raises(RequestError, match=f"{name} must be a positive number of seconds, not "):
            Timeouts(**{name: value})

    @given(limits, limits)
    def test_each_that_is_not_set_is_the_others(self, mine: Timeouts, others: Timeouts) -> None:
        merged = mine.over(others)
        for name in NAMES:
            own = getattr(mine, name)
            assert getattr(merged, name) == (getattr(others, name) if own is None else own)

    def test_a_plain_number_is_the_total(self) -> None:
        from llm_provider._requests.request import check

        assert check("timeout", 30).over(DEFAULT_TIMEOUTS) == Timeouts(connect=15, total=30)

    def test_they_are_values(self) -> None:
        mine = Timeouts(idle=3)
        assert mine == Timeouts(idle=3.0)
        assert pickle.loads(pickle.dumps(mine)) == mine
        assert len({mine, Timeouts(idle=3)}) == 1
        with pytest.raises(AttributeError):
            mine.idle = 5  # type: ignore[misc]  # on purpose

    def test_wrong_ones_are_refused_before_anything_is_sent(self) -> None:
        for wrong in ((1, 2), {"total": 3}, "soon", 0):
            with pytest.raises(RequestError, match=r"timeout must be a (positive )?number of seconds"):
                call("gpt-6.1-sol", "Hi", timeout=wrong)  # type: ignore[arg-type]  # on purpose
            with pytest.raises(RequestError, match="timeout must be"):
                Client(timeout=wrong)  # type: ignore[arg-type]  # on purpose


class TestDeadline:
    def test_it_is_a_moment(self) -> None:
        passed, coming = (Deadline(5.0, time.perf_counter() + seconds) for seconds in (-1, 60))
        assert passed.left < 0 < coming.left <= 60
        assert passed.allowed == 5.0
