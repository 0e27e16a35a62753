"""Prompts and answers in the form of the GenAI conventions."""

import json
from types import SimpleNamespace
from typing import Any

from llm_provider import Choice, LLMError, ToolCall
from llm_provider._telemetry.content import answer_json, prompt_json


def read(text: str | None) -> Any:
    assert text is not None
    return json.loads(text)


def test_a_prompt_without_the_bytes_of_its_images() -> None:
    messages = [
        {"role": "system", "content": "Be brief."},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "What is this?"},
                {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
            ],
        },
        {"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "1", "content": "done"},
    ]
    assert read(prompt_json(SimpleNamespace(messages=messages))) == [
        {"role": "system", "parts": [{"type": "text", "content": "Be brief."}]},
        {
            "role": "user",
            "parts": [
                {"type": "text", "content": "What is this?"},
                {"type": "uri", "uri": "https://example.com/a.png"},
                {"type": "image_url"},
            ],
        },
        {"role": "assistant", "parts": [{"type": "tool_call", "id": "1", "name": "f", "arguments": "{}"}]},
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "1", "response": "done"}]},
    ]
    assert prompt_json(SimpleNamespace(inputs=["a"])) == (
        '[{"role":"user","parts":[{"type":"text","content":"a"}]}]'
    )
    assert prompt_json(SimpleNamespace()) is None


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
