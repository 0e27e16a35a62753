"""Items of the Responses format that are calls, and the items that answer them."""

import itertools
from typing import Any

import pytest

from llm_provider._core.formats.openai_responses.decode import decode
from llm_provider._core.formats.openai_responses.stream import Assembler
from llm_provider._core.types.messages import delta_of

ANSWER = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "4"}]}
CALLED = {"type": "function_call", "call_id": "c", "name": "weather", "arguments": "{}"}


@pytest.mark.parametrize("streamed", ["whole", "stream", "stream without places", "last event only"])
@pytest.mark.parametrize("kind", ["function_call", "custom_tool_call"])
@pytest.mark.parametrize("called", [False, True])
def test_a_call_without_a_name_and_arguments_is_none(streamed: str, kind: str, called: bool) -> None:
    for name, arguments, position in itertools.product(("", None, ...), ("", None, ...), range(3)):
        check_blank_call(streamed, kind, (name, arguments), position, called)


def check_blank_call(streamed: str, kind: str, fields: tuple[Any, Any], position: int, called: bool) -> None:
    """A call with these fields at a position beside an answer, and perhaps a call, is left out."""
    name = "input" if kind == "custom_tool_call" else "arguments"
    blank = {"type": kind, "id": "b", **dict(zip(("name", name), fields, strict=True))}
    blank = {field: value for field, value in blank.items() if value is not ...}
    real = [ANSWER, *([CALLED] if called else [])]
    items = [*real[:position], blank, *real[position:]]
    reply = {"object": "response", "status": "completed", "output": items}
    calls: dict[int, str] = {}
    if streamed != "whole":
        assembler = Assembler()
        events: list[dict[str, Any]] = []
        for index, item in enumerate(items if streamed != "last event only" else ()):
            where = {"output_index": index} if streamed == "stream" else {}
            opened = {**item, "arguments": ""} if item is CALLED else item
            events.append({"type": "response.output_item.added", "item": opened, **where})
            if item is CALLED:
                events.append({"type": "response.function_call_arguments.delta", "delta": "{}", **where})
            events.append({"type": "response.output_item.done", "item": item, **where})
        for event in [*events, {"type": "response.completed", "response": reply}]:
            for call in delta_of(assembler.feed(event)).tool_calls:
                calls[call.index] = calls.get(call.index, "") + call.name + call.arguments
        assert calls == ({0: "weather{}"} if called else {})
        reply = assembler.reply()
    choice = decode(reply).choices[0]
    assert [call.name for call in choice.tool_calls] == ["weather"] * called
    assert (choice.text, choice.finish_reason) == ("4", "tool_calls" if called else "stop")
    assert choice.message["provider_specific_fields"]["content"] == real
