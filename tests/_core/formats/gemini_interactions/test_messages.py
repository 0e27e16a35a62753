"""Conversations as the steps of an interaction, over the real SDK against a server of our own."""

import base64
from typing import Any

import pytest

from interactions_server import (
    HERE,
    MODEL,
    InteractionsServer,
    call_step,
    text_step,
    thought,
)
from llm_provider import (
    Client,
)
from support import WAYS, ask


def look(place: str) -> str:
    """Look at a place."""
    return f"{place} is fine"


def _with_tool(body: Any) -> dict[str, Any]:
    results = [step for step in body["input"] if step["type"] == "function_result"]
    if not results:
        calls = [call_step("look", {"place": place}, f"c{place}") for place in ("A", "B")]
        return {"status": "requires_action", "steps": [thought("c2ln", "Look first."), *calls]}
    return {
        "status": "completed",
        "steps": [thought(), text_step("; ".join(step["result"] for step in results))],
    }


@pytest.mark.parametrize("way", WAYS)
def test_functions_are_run_and_signatures_go_back(
    server: InteractionsServer, client: Client, way: str
) -> None:
    server.answer = _with_tool
    answered = ask(client, way, MODEL, "Look", tools=[look], max_tool_rounds=2, **HERE)
    assert answered.text == "A is fine; B is fine"
    first, second = server.bodies
    assert first["tools"][0]["name"] == "look"
    kinds = [step["type"] for step in second["input"]]
    assert kinds == ["user_input", "thought", "function_call", "function_call", *["function_result"] * 2]
    assert second["input"][1] == thought("c2ln", "Look first.")
    assert [step["call_id"] for step in second["input"][-2:]] == ["cA", "cB"]
    assert ask(client, way, MODEL, "Look", tools=[look], max_tool_rounds=2, **HERE).cached


def test_calls_of_other_models_get_a_signature_and_an_id(server: InteractionsServer, client: Client) -> None:
    function = {"name": "look", "arguments": '{"place": "A"}'}
    call = {"id": "call_x", "type": "function", "function": function}
    turn = {"role": "assistant", "content": None, "tool_calls": [call]}
    result = {"role": "tool", "tool_call_id": "call_x", "content": "fine"}
    conversation = [{"role": "user", "content": "Look"}, turn, result, turn, result]
    client.call(MODEL, conversation, **HERE)
    steps = server.bodies[0]["input"]
    kinds = ["user_input", *["thought", "function_call", "function_result"] * 2]
    assert [step["type"] for step in steps] == kinds
    assert base64.b64decode(steps[1]["signature"]) == b"skip_thought_signature_validator"
    calls, results = steps[2::3], steps[3::3]
    assert [step["id"] for step in calls] == [step["call_id"] for step in results]
    assert calls[0]["id"] != calls[1]["id"]
    # Gemini 2.5 asks for none.
    client.call("gemini-2.5-flash", conversation, **HERE)
    assert "thought" not in [step["type"] for step in server.bodies[1]["input"]]


def test_an_edited_answer_is_sent_as_it_was_edited(server: InteractionsServer, client: Client) -> None:
    answered = client.call(MODEL, "Hello", **HERE)
    message = dict(answered.message)
    turn = {"role": "user", "content": "Go on"}
    client.call(MODEL, [{"role": "user", "content": "Hello"}, message, turn], **HERE)
    assert server.bodies[1]["input"][1:3] == [thought(), text_step("You said: Hello")]
    client.call(MODEL, [{"role": "user", "content": "Hello"}, {**message, "content": "No"}, turn], **HERE)
    assert server.bodies[2]["input"][1:2] == [text_step("No")]


def test_system_messages_and_media(server: InteractionsServer, client: Client) -> None:
    png = "data:image/png;base64,iVBORw0KGgo="
    note = "data:text/plain;base64," + base64.b64encode("Grüße".encode()).decode()
    content = [
        {"type": "text", "text": "Look"},
        {"type": "image_url", "image_url": {"url": png, "detail": "low"}},
        {"type": "image_url", "image_url": {"url": "https://example.org/a"}},
        {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
        {"type": "video_url", "video_url": {"url": "https://example.org/a.mp4"}},
        {"type": "document_url", "document_url": {"url": "https://example.org/a.pdf"}},
        {"type": "file", "file": {"file_data": note, "filename": "a.txt"}},
    ]
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": content}]
    client.call(MODEL, messages, system="First.", **HERE)
    body = server.bodies[0]
    assert body["system_instruction"] == "First.\n\nBe brief."
    assert body["input"][0]["content"] == [
        {"type": "text", "text": "Look"},
        {"type": "image", "data": "iVBORw0KGgo=", "mime_type": "image/png", "resolution": "low"},
        {"type": "image", "uri": "https://example.org/a"},
        {"type": "audio", "data": "AAAA", "mime_type": "audio/wav"},
        {"type": "video", "uri": "https://example.org/a.mp4", "mime_type": "video/mp4"},
        {"type": "document", "uri": "https://example.org/a.pdf", "mime_type": "application/pdf"},
        {"type": "text", "text": "Grüße"},
    ]


def test_a_thought_without_a_signature_does_not_go_back(server: InteractionsServer, client: Client) -> None:
    def answer(body: Any) -> dict[str, Any]:
        return {**_with_tool(body), "steps": [thought("", "Look."), *_with_tool(body)["steps"][1:]]}

    server.answer = answer
    client.call(MODEL, "Look", tools=[look], max_tool_rounds=2, **HERE)
    _, signed, *calls = server.bodies[1]["input"][:4]
    assert signed.keys() == {"type", "signature"}
    assert [step["type"] for step in calls] == ["function_call"] * 2
