"""Stored states: which values each check allows, and that no damaged state is accepted."""

import math
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_provider._limits.state import InvalidStateError, Stored, count, flag, number, positive

ANYTHING = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.lists(st.integers())
    | st.just({})
)


class Window(Stored):
    FIELDS: ClassVar = {"size": positive}

    def __init__(self) -> None:
        self.size = 1.0
        self.other = 2


class Scope(Stored):
    FIELDS: ClassVar = {"_sent": count, "limited": flag}
    PARTS: ClassVar = {"window": Window}

    def __init__(self, sent: int, limited: bool) -> None:
        self._sent, self.limited, self.window = sent, limited, Window()


@given(ANYTHING)
def test_each_check_allows_its_kind_of_value(value: object) -> None:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool) and value == value
    assert flag(value) == (value is True or value is False)
    assert count(value) == (isinstance(value, int) and not isinstance(value, bool) and value >= 0)
    assert number(value) == is_number
    assert positive(value) == (is_number and value > 0)


@pytest.mark.parametrize(
    "state",
    [None, [], "size", {}, {"size": 1.0, "more": 1}, {"size": None}, {"size": math.nan}, {"size": "1"}],
)
def test_a_damaged_state_is_refused(state: object) -> None:
    with pytest.raises(InvalidStateError):
        Window.from_state(state)
    with pytest.raises(InvalidStateError):
        Scope.from_state({**Scope(0, False).to_state(), "window": state})
