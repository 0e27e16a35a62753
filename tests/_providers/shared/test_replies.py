"""What the decoders of all formats share."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from llm_provider._providers.shared import replies

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(JSON_VALUES)
def test_a_count_is_never_negative(value: Any) -> None:
    tokens = replies.count({"tokens": value}, "tokens")
    assert type(tokens) is int
    assert tokens >= 0
    assert replies.count({}, "tokens") == 0


@given(JSON_VALUES)
def test_a_part_is_an_object(value: Any) -> None:
    assert replies.part({"details": value}, "details") == (value if isinstance(value, dict) else {})
