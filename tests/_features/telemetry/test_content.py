"""Answers in the form of the GenAI conventions. Golden pairs have prompts."""

import json
from types import SimpleNamespace
from typing import Any

from llm_provider import Choice, LLMError, ToolCall
from llm_provider._features.telemetry.content import answer_json


def read(text: str | None) -> Any:
    assert text is not None
    return json.loads(text)


def test_an_answer() -> None:
    choice = Choice(
        text="4",
        reasoning="2 and 2",
        tool_calls=(ToolCall(id="1", name="f", arguments="{}"),),
        finish_reason="tool_calls",
    )
    assert read(answer_json(SimpleNamespace(choices=(choice,)))) == [
        {
            "role": "assistant",
            "parts": [
                {"type": "reasoning", "content": "2 and 2"},
                {"type": "text", "content": "4"},
                {"type": "tool_call", "id": "1", "name": "f", "arguments": "{}"},
            ],
            "finish_reason": "tool_call",
        }
    ]
    assert answer_json(LLMError("no")) is None
    assert answer_json(5) is None
