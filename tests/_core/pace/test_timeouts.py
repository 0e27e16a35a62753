"""Timeouts and deadlines: what is accepted. How they are kept is in test_attempt and test_engine."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_provider import RequestError, Timeouts

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
