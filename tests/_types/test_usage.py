"""Token counts."""

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from llm_provider._types.response import Choice, Response
from llm_provider._types.usage import Usage

COUNTS = st.builds(Usage, **{field.name: st.integers(0, 10**9) for field in dataclasses.fields(Usage)})
DEEP = "[" * 100_000


class City(BaseModel):
    name: str
    people: int


def response(text: str = "Hello", **fields: Any) -> Response:
    choice = {
        name: fields.pop(name)
        for name in ("finish_reason", "reasoning", "tool_calls", "message")
        if name in fields
    }
    defaults: dict[str, Any] = {
        "usage": Usage(input_tokens=10, output_tokens=5),
        "model": "m",
        "provider": "p",
    }
    return Response(choices=(Choice(text=text, **choice),), **{**defaults, **fields})


class TestUsage:
    @given(COUNTS, COUNTS, COUNTS)
    def test_adds_up(self, first: Usage, two: Usage, three: Usage) -> None:
        assert first + two == two + first
        assert (first + two) + three == first + (two + three)
        assert first + Usage() == first
        assert (first + two).total_tokens == first.total_tokens + two.total_tokens

    @given(COUNTS)
    def test_shows_what_it_holds(self, usage: Usage) -> None:
        assert eval(repr(usage)) == usage

    def test_adds_to_nothing_else(self) -> None:
        with pytest.raises(TypeError):
            Usage() + 1  # type: ignore[operator]  # on purpose
