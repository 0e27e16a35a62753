"""The parts of messages and of streams."""

import pytest

from llm_provider._core.errors import JSONSchemaValidationError
from llm_provider._core.types.messages import Delta, ToolCall, ToolCallDelta, delta_of


class TestToolCall:
    def test_arguments_are_python_values(self) -> None:
        assert ToolCall(id="1", name="f", arguments='{"a": [1, null]}').parsed_arguments == {"a": [1, None]}

    @pytest.mark.parametrize("arguments", ["", "{", "{'a': 1}", "[" * 100_000])
    def test_what_is_not_json_is_our_error(self, arguments: str) -> None:
        with pytest.raises(JSONSchemaValidationError, match="tool call 'f'"):
            _ = ToolCall(id="1", name="f", arguments=arguments).parsed_arguments


class TestDelta:
    def test_is_true_where_it_adds_something(self) -> None:
        assert not Delta()
        for delta in (Delta(text="a"), Delta(reasoning="a"), Delta(tool_calls=(ToolCallDelta(index=0),))):
            assert delta
        assert str(Delta(text="a", reasoning="b")) == "a"
        assert delta_of("a") == delta_of(Delta(text="a")) == Delta(text="a")
