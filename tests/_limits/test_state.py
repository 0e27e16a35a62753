"""Stored states: which values each check allows, and that no damaged state is accepted."""

from __future__ import annotations

import json
import math
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_provider._limits.state import (
    InvalidStateError,
    count,
    flag,
    number,
    positive,
    restore,
    state_of,
)

ANYTHING = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.lists(st.integers())
    | st.just({})
)


@given(ANYTHING)
def test_each_check_allows_its_kind_of_value(value: Any) -> None:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool) and value == value
    assert flag(value) == (value is True or value is False)
    assert count(value) == (isinstance(value, int) and not isinstance(value, bool) and value >= 0)
    assert number(value) == is_number
    assert positive(value) == (is_number and value > 0)


@given(st.floats(allow_nan=False), st.integers(0), st.booleans())
def test_a_state_comes_back_through_json(size: float, sent: int, limited: bool) -> None:
    fields = {"size": number, "_sent": count, "limited": flag}
    stored = json.dumps(state_of(SimpleNamespace(size=size, _sent=sent, limited=limited, other=1), fields))
    restored = SimpleNamespace(other=2)
    restore(restored, json.loads(stored), fields)
    assert vars(restored) == {"size": size, "_sent": sent, "limited": limited, "other": 2}


@pytest.mark.parametrize(
    "state",
    [None, [], "size", {}, {"size": 1.0, "more": 1}, {"size": None}, {"size": math.nan}, {"size": "1"}],
)
def test_a_damaged_state_is_refused(state: Any) -> None:
    with pytest.raises(InvalidStateError):
        restore(SimpleNamespace(), state, {"size": number})


def test_nested_states_are_the_callers() -> None:
    restored = SimpleNamespace()
    restore(restored, {"size": 1.0, "window": {}}, {"size": number}, nested=["window"])
    assert vars(restored) == {"size": 1.0}
    with pytest.raises(InvalidStateError):
        restore(restored, {"size": 1.0}, {"size": number}, nested=["window"])
