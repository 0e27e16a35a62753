"""Token counts."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_provider._core.types.usage import Usage

COUNTS = st.builds(Usage, **{field.name: st.integers(0, 10**9) for field in dataclasses.fields(Usage)})


class TestUsage:
    @given(COUNTS, COUNTS, COUNTS)
    def test_adds_up(self, first: Usage, two: Usage, three: Usage) -> None:
        assert first + two == two + first
        assert (first + two) + three == first + (two + three)
        assert first + Usage() == first
        assert (first + two).total_tokens == first.total_tokens + two.total_tokens
        with pytest.raises(TypeError):
            first + 1  # type: ignore[operator]  # on purpose

    @given(COUNTS)
    def test_shows_what_it_holds(self, usage: Usage) -> None:
        assert eval(repr(usage)) == usage
