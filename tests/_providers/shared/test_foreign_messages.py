"""Messages in the words of other formats. tests/conformance has every form on every route."""

from typing import Any

import pytest

from llm_provider import RequestError
from llm_provider._providers.shared.foreign_messages import in_chat_form


def converted(*messages: dict[str, Any], own: str = "") -> list[Any]:
    return [message for _, message in in_chat_form(messages, "groq", own=own)]


def test_messages_in_openais_form_stay_the_same_objects() -> None:
    messages = (
        {"role": "user", "content": "Hi"},
        {"role": "user", "content": [{"type": "text", "text": "a"}]},
    )
    assert all(first is second for first, second in zip(converted(*messages), messages, strict=True))


def test_results_stand_before_the_rest_of_their_message_and_keep_its_place() -> None:
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "sunny"}
    text = {"type": "text", "text": "Thanks"}
    turns = [{"role": "user", "content": "Hi"}, {"role": "user", "content": [text, result]}]
    assert list(in_chat_form(turns, "groq")) == [
        (0, turns[0]),
        (1, {"role": "tool", "tool_call_id": "t1", "content": "sunny"}),
        (1, {"role": "user", "content": [text]}),
    ]
    assert converted(*turns, own="anthropic") == turns


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ({"type": "text", "media_type": "text/plain", "data": "Once"}, "A title\n\nOnce"),
        ({"type": "content", "content": "Once"}, "A title\n\nOnce"),
        ({"type": "content", "content": [{"type": "text", "text": "Once"}]}, "A title\n\nOnce"),
    ],
)
def test_a_document_of_text_is_its_text(source: dict[str, Any], text: str) -> None:
    part = {"type": "document", "source": source, "title": "A title"}
    (message,) = converted({"role": "user", "content": [part]})
    assert message["content"] == [{"type": "text", "text": text}]


def test_citations_are_left_out_with_a_warning() -> None:
    source = {"type": "text", "media_type": "text/plain", "data": "Once"}
    part = {"type": "document", "source": source, "citations": {"enabled": True}}
    with pytest.warns(UserWarning, match="citations"):
        converted({"role": "user", "content": [part]})


@pytest.mark.parametrize("content", [[{"type": "tool_use", "id": "t1"}], [{"type": "tool_result"}]])
def test_a_block_without_its_fields_is_named(content: list[Any]) -> None:
    role = "assistant" if content[0]["type"] == "tool_use" else "user"
    with pytest.raises(RequestError, match=r"messages\[0\]\.content"):
        converted({"role": role, "content": content})
