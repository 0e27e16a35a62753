"""OpenAI-style messages as Gemini's contents, and answers sent back in the next turn."""

import json
from typing import Any

import pytest
from google.genai import types

from gemini_payloads import payload_of, reply, user
from llm_provider._errors import RequestError
from llm_provider._providers.gemini import adapter
from llm_provider._types.messages import ToolCall

PNG = "data:image/png;base64,iVBORw0KGgo="


def test_leading_system_messages_are_the_instruction() -> None:
    payload = payload_of(
        [
            {"role": "system", "content": "Be short"},
            {"role": "developer", "content": [{"type": "text", "text": "Be kind"}]},
            {"role": "user", "content": "Hi"},
        ]
    )
    assert payload["systemInstruction"] == {"parts": [{"text": "Be short"}, {"text": "Be kind"}]}
    assert len(payload["contents"]) == 1


def test_every_kind_of_user_part() -> None:
    payload = payload_of(
        user(
            {"type": "text", "text": "Look"},
            {"type": "image_url", "image_url": {"url": PNG, "detail": "auto"}},
            {"type": "image_url", "image_url": {"url": "https://example.org/a.JPG?x=1"}},
            {"type": "image_url", "image_url": {"url": "https://example.org/a"}},
            {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
            {
                "type": "file",
                "file": {"file_data": "data:application/pdf;base64,JVBERi0=", "filename": "a.pdf"},
            },
            {"type": "file", "file": {"file_id": "https://example.org/v1/files/abc"}},
        )
    )
    assert payload["contents"][0]["parts"] == [
        {"text": "Look"},
        {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}},
        {"fileData": {"mimeType": "image/jpeg", "fileUri": "https://example.org/a.JPG?x=1"}},
        {"fileData": {"fileUri": "https://example.org/a"}},
        {"inlineData": {"mimeType": "audio/wav", "data": "AAAA"}},
        {"inlineData": {"mimeType": "application/pdf", "data": "JVBERi0="}},
        {"fileData": {"fileUri": "https://example.org/v1/files/abc"}},
    ]


CALL = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Bern"}'}}


@pytest.mark.parametrize(
    ("messages", "place"),
    [
        (user({"type": "video_url", "video_url": {}}), "messages[0].content[0]"),
        (user({"type": "text", "text": "x"}, {"type": "text"}), "messages[0].content[1].text"),
        (user({"type": "text", "text": "x", "unknown": []}), "messages[0].content[0].unknown"),
        (user({"type": "document_url", "document_url": "http://example.org/a"}), "document_url.url"),
        (user({"type": "image_url", "image_url": "x"}), "messages[0].content[0].image_url"),
        (user({"type": "image_url", "image_url": {"url": PNG, "detail": "low"}}), "image_url.detail"),
        (user({"type": "image_url", "image_url": {"url": "http://example.org/a.png"}}), "image_url.url"),
        (user({"type": "image_url", "image_url": {"url": "data:image/png,raw"}}), "image_url.url"),
        (user({"type": "image_url", "image_url": {"url": "data:;base64,AA"}}), "image_url.url"),
        (user({"type": "input_audio", "input_audio": {"data": "AA"}}), "messages[0].content[0].input_audio"),
        (user({"type": "file", "file": {"file_id": "file-1"}}), "messages[0].content[0].file"),
        ([{"role": "system", "content": [{"type": "image_url"}]}], "messages[0].content[0]"),
        ([{"role": "system", "content": "only"}], "messages"),
        ([{"role": "user", "content": "x"}, {"role": "system", "content": "late"}], "messages[1]"),
        (
            [{"role": "assistant", "content": "x", "function_call": {"arguments": "{}"}}],
            "messages[0].tool_calls[0]",
        ),
        ([{"role": "assistant", "content": None, "tool_calls": [{}]}], "messages[0].tool_calls[0]"),
        (
            [{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": ["x"]}}]}],
            "messages[0].tool_calls[0].function.arguments",
        ),
        ([{"role": "tool", "tool_call_id": "nobody", "content": "x"}], "messages[0]"),
        (
            [
                {"role": "assistant", "content": None, "tool_calls": [CALL]},
                {"role": "tool", "tool_call_id": "c1", "content": [{"type": "image_url"}]},
            ],
            "messages[1].content[0]",
        ),
    ],
)
def test_what_gemini_has_no_place_for_is_named(messages: list[dict[str, Any]], place: str) -> None:
    with pytest.raises(RequestError) as caught:
        payload_of(messages)
    assert place in str(caught.value)


def test_what_other_providers_put_into_an_answer_is_no_obstacle() -> None:
    answer = {
        "role": "assistant",
        "content": "Hello",
        "refusal": None,
        "annotations": [],
        "audio": None,
        "function_call": None,
        "reasoning_content": "They greet me",
        "provider_specific_fields": {"provider": "anthropic", "content": [{"type": "text", "text": "Hello"}]},
    }
    conversation = [{"role": "user", "content": "Hi"}, answer, {"role": "user", "content": "Bye"}]
    with pytest.warns(UserWarning, match="an earlier answer holds reasoning_content, for which gemini"):
        contents = payload_of(conversation)["contents"]
    assert contents[1] == {"role": "model", "parts": [{"text": "Hello"}]}


@pytest.mark.parametrize("content", [{}, {"content": None}, {"content": ""}, {"content": []}])
def test_an_empty_answer_is_left_out(content: dict[str, Any]) -> None:
    conversation = [{"role": "user", "content": "Hi"}, {"role": "assistant", **content}]
    with pytest.warns(UserWarning, match="an earlier answer is empty, for which gemini has no form"):
        contents = payload_of([*conversation, {"role": "user", "content": "Bye"}])["contents"]
    assert [turn["role"] for turn in contents] == ["user", "user"]


@pytest.mark.parametrize("text", ["[1]", '{"city": "Be'])
def test_arguments_that_are_no_object_are_sent_as_text(text: str) -> None:
    cut = {**CALL, "function": {"name": "weather", "arguments": text}}
    with pytest.warns(UserWarning, match="not a JSON object, which gemini needs"):
        (turn,) = payload_of([{"role": "assistant", "content": None, "tool_calls": [cut]}])["contents"]
    assert turn["parts"][0]["functionCall"] == {"name": "weather", "args": {"arguments": text}}


def test_a_refusal_is_what_was_said() -> None:
    answer = {"role": "assistant", "content": [{"type": "refusal", "refusal": "No"}]}
    assert payload_of([answer])["contents"][0]["parts"] == [{"text": "No"}]


def test_tool_results_of_one_turn_come_together() -> None:
    other = {"id": "c2", "type": "function", "function": {"name": "time", "arguments": ""}}
    contents = payload_of(
        [
            {"role": "user", "content": "Weather and time?"},
            {"role": "assistant", "content": "One moment", "tool_calls": [CALL, other]},
            {"role": "tool", "tool_call_id": "c2", "content": "noon"},
            {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "sun"}]},
            {"role": "user", "content": "Thanks"},
        ],
        model="gemini-2.5-flash",
    )["contents"]
    assert [content["role"] for content in contents] == ["user", "model", "user", "user"]
    assert contents[1]["parts"] == [
        {"text": "One moment"},
        {"functionCall": {"name": "weather", "args": {"city": "Bern"}}},
        {"functionCall": {"name": "time", "args": {}}},
    ]
    assert contents[2]["parts"] == [
        {"functionResponse": {"name": "time", "response": {"output": "noon"}}},
        {"functionResponse": {"name": "weather", "response": {"output": "sun"}}},
    ]


def test_calls_of_another_model_carry_the_stand_in_for_a_signature() -> None:
    history = [
        {"role": "user", "content": "?"},
        {"role": "assistant", "content": None, "tool_calls": [CALL, CALL]},
    ]
    signed = payload_of(history)["contents"][1]["parts"]
    assert ["thoughtSignature" in entry for entry in signed] == [True, False]
    unsigned = payload_of(history, model="gemini-2.5-pro")["contents"][1]["parts"]
    assert ["thoughtSignature" in entry for entry in unsigned] == [False, False]


ANSWER = [
    {"text": "I should look", "thought": True},
    {"text": "One moment", "thoughtSignature": "c2ln"},
    {
        "functionCall": {"name": "weather", "args": {"city": "Bern"}, "id": "wire-1"},
        "thoughtSignature": "c2lnMg==",
    },
    {"executableCode": {"code": "1"}},
]


def replayed(message: dict[str, Any], *more: dict[str, Any]) -> list[dict[str, Any]]:
    return list(payload_of([{"role": "user", "content": "?"}, message, *more])["contents"])


def test_an_answer_is_replayed_as_it_came() -> None:
    choice = adapter.decode(reply(*ANSWER)).choices[0]
    message = json.loads(json.dumps(choice.message))
    assert choice.tool_calls == (ToolCall(id="wire-1", name="weather", arguments='{"city":"Bern"}'),)
    result = {"role": "tool", "tool_call_id": "wire-1", "content": "sun"}
    contents = replayed(message, result)
    assert contents[1]["parts"] == ANSWER
    answer = {"name": "weather", "response": {"output": "sun"}, "id": "wire-1"}
    assert contents[2]["parts"] == [{"functionResponse": answer}]


@pytest.mark.parametrize(
    "edit",
    [
        {"content": "Two moments"},
        {"content": [{"type": "text", "text": "One moment"}]},
        {"tool_calls": []},
        {"tool_calls": [{**CALL, "function": {"name": "weather", "arguments": '{"city": "Rome"}'}}]},
        {"provider_specific_fields": {"provider": "gemini", "content": [7]}},
        {"provider_specific_fields": {"provider": "gemini", "content": []}},
    ],
)
def test_an_edited_answer_is_what_it_says_now(edit: dict[str, Any]) -> None:
    message = {**adapter.decode(reply(*ANSWER)).choices[0].message, **edit}
    parts = replayed(message)[1]["parts"]
    assert parts != ANSWER
    assert parts[0]["text"] == ("Two moments" if edit.get("content") == "Two moments" else "One moment")


def test_what_another_provider_kept_stays_out() -> None:
    fields = {"provider": "anthropic", "content": [{"type": "thinking"}]}
    message = {**adapter.decode(reply(*ANSWER)).choices[0].message, "provider_specific_fields": fields}
    with pytest.warns(UserWarning, match="an earlier answer holds thinking, for which gemini"):
        parts = replayed(message)[1]["parts"]
    assert parts[0] == {"text": "One moment"}


def test_a_tool_result_finds_its_call_even_if_turns_share_an_id() -> None:
    first = {"role": "assistant", "content": None, "tool_calls": [CALL]}
    second = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{**CALL, "function": {"name": "time", "arguments": "{}"}}],
    }
    result = {"role": "tool", "tool_call_id": "c1", "content": "x"}
    contents = replayed(first, result, second, result)
    names = [content["parts"][0].get("functionResponse", {}).get("name") for content in contents]
    assert names == [None, None, "weather", None, "time"]


CONTROL = {"type": "ephemeral"}


def sendable(messages: list[dict[str, Any]], **more: Any) -> list[dict[str, Any]]:
    """The contents, which the SDK's types accept."""
    contents: list[dict[str, Any]] = payload_of(messages, **more)["contents"]
    for content in contents:
        types.Content.model_validate_json(json.dumps(content))
    return contents


def test_cache_control_is_left_out_visibly() -> None:
    message = user({"type": "text", "text": "Hi", "cache_control": CONTROL})[0]
    for given in (message, {"role": "user", "content": "Hi", "cache_control": CONTROL}):
        with pytest.warns(UserWarning, match="cache_control"):
            assert sendable([given]) == [{"role": "user", "parts": [{"text": "Hi"}]}]


def test_a_name_is_left_out_visibly() -> None:
    for role in ("user", "assistant"):
        given = {"role": role, "content": "Hi", "name": "Ann"}
        with pytest.warns(UserWarning, match="holds name, for which gemini has no form"):
            (turn,) = sendable([given])
        assert turn["parts"] == [{"text": "Hi"}]


def test_calls_of_other_kinds_are_calls_of_functions() -> None:
    old = {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": '{"a":1}'}}
    custom = {"id": "c1", "type": "custom", "custom": {"name": "grep", "input": "a.*b"}}
    results = [{"role": "tool", "tool_call_id": identifier, "content": "x"} for identifier in ("", "c1")]
    asked = {"role": "assistant", "content": None, "tool_calls": [custom]}
    turns = sendable([{"role": "user", "content": "?"}, old, results[0], asked, results[1]])
    calls = [turns[place]["parts"][0]["functionCall"] for place in (1, 3)]
    assert calls == [{"name": "f", "args": {"a": 1}}, {"name": "grep", "args": {"input": "a.*b"}}]
    answers = [turns[place]["parts"][0]["functionResponse"]["name"] for place in (2, 4)]
    assert answers == ["f", "grep"]


@pytest.mark.filterwarnings("ignore:an earlier answer holds audio")
def test_a_spoken_answer_is_its_transcript() -> None:
    spoken = {"role": "assistant", "content": None, "audio": {"id": "a1", "transcript": "Hello"}}
    assert sendable([{"role": "user", "content": "?"}, spoken])[1]["parts"] == [{"text": "Hello"}]


def test_videos_and_documents_at_a_url() -> None:
    parts = sendable(
        user(
            {"type": "video_url", "video_url": {"url": "https://example.org/a.mp4"}},
            {"type": "video_url", "video_url": {"url": "data:video/mp4;base64,AA=="}},
            {"type": "document_url", "document_url": "gs://bucket/a.pdf", "document_name": "a"},
            {"type": "document_url", "document_url": "https://example.org/v1/files/abc"},
            {"type": "image_url", "image_url": "https://example.org/a.png"},
        )
    )[0]["parts"]
    assert parts == [
        {"fileData": {"mimeType": "video/mp4", "fileUri": "https://example.org/a.mp4"}},
        {"inlineData": {"mimeType": "video/mp4", "data": "AA=="}},
        {"fileData": {"mimeType": "application/pdf", "fileUri": "gs://bucket/a.pdf"}},
        {"fileData": {"fileUri": "https://example.org/v1/files/abc"}},
        {"fileData": {"mimeType": "image/png", "fileUri": "https://example.org/a.png"}},
    ]


def test_media_in_a_tool_result() -> None:
    asked = {"role": "assistant", "content": None, "tool_calls": [CALL]}
    content = [
        {"type": "text", "text": "Here"},
        {"type": "image_url", "image_url": {"url": PNG}},
        {"type": "file", "file": {"file_id": "https://example.org/v1/files/abc"}},
    ]
    result = {"role": "tool", "tool_call_id": "c1", "content": content}
    (part,) = sendable([{"role": "user", "content": "?"}, asked, result])[2]["parts"]
    assert part["functionResponse"] == {
        "name": "weather",
        "response": {"output": "Here"},
        "parts": [
            {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}},
            {"fileData": {"fileUri": "https://example.org/v1/files/abc"}},
        ],
    }


def test_a_tool_that_failed() -> None:
    asked = {"role": "assistant", "content": None, "tool_calls": [CALL]}
    result = {"role": "tool", "tool_call_id": "c1", "content": "no network", "is_error": True}
    (part,) = sendable([{"role": "user", "content": "?"}, asked, result])[2]["parts"]
    assert part["functionResponse"]["response"] == {"error": "no network"}


def test_calls_and_results_without_ids() -> None:
    other = {"id": "", "type": "function", "function": {"name": "time", "arguments": "{}"}}
    asked = {"role": "assistant", "content": None, "tool_calls": [{**CALL, "id": ""}, other]}
    results = [{"role": "tool", "tool_call_id": "", "content": output} for output in ("sun", "noon")]
    contents = sendable([{"role": "user", "content": "?"}, asked, *results])
    responses = [part["functionResponse"] for part in contents[2]["parts"]]
    assert [(one["name"], one["response"]["output"]) for one in responses] == [
        ("weather", "sun"),
        ("time", "noon"),
    ]


def test_thinking_of_another_provider_is_left_out_visibly() -> None:
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}
    answer = {"role": "assistant", "content": [thinking, {"type": "text", "text": "Hi"}]}
    with pytest.warns(UserWarning, match="thinking"):
        assert sendable([{"role": "user", "content": "?"}, answer])[1]["parts"] == [{"text": "Hi"}]
