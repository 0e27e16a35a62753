"""The parts of messages and of streams."""

import dataclasses
from typing import Any

import pytest
from hypothesis import strategies as st
from pydantic import BaseModel

from llm_provider._errors import (
    JSONSchemaValidationError,
)
from llm_provider._types.messages import Delta, ToolCall, ToolCallDelta
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


class TestToolCall:
    def test_arguments_are_python_values(self) -> None:
        assert ToolCall(id="1", name="f", arguments='{"a": [1, null]}').parsed_arguments == {"a": [1, None]}

    @pytest.mark.parametrize("arguments", ["", "{", "{'a': 1}", DEEP])
    def test_what_is_not_json_is_our_error(self, arguments: str) -> None:
        with pytest.raises(JSONSchemaValidationError, match="tool call 'f'"):
            _ = ToolCall(id="1", name="f", arguments=arguments).parsed_arguments


class TestDelta:
    def test_is_true_where_it_adds_something(self) -> None:
        assert not Delta()
        for delta in (Delta(text="a"), Delta(reasoning="a"), Delta(tool_calls=(ToolCallDelta(index=0),))):
            assert delta
        assert str(Delta(text="a", reasoning="b")) == "a"
