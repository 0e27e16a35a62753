"""Gemini without a network: payloads, replies, streams, errors, and replaying an answer in the next turn."""

import itertools
import json
import subprocess
import sys
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from llm_provider._errors import (
    APIResponseValidationError,
    AuthenticationError,
    ContextWindowExceededError,
    InternalServerError,
    LLMError,
    OverloadedError,
    QuotaExceededError,
    RateLimitError,
    RequestError,
    UnsupportedParameterError,
)
from llm_provider._providers.adapter import EncodedRequest
from llm_provider._providers.gemini import adapter
from llm_provider._providers.gemini.decode import error_of
from llm_provider._requests.request import Request
from llm_provider._requests.routing import resolve
from llm_provider._runtime.canonical_json import canonical
from llm_provider._types import ToolCall, ToolCallDelta, Usage, delta_of

MODEL = "gemini-3.1-pro-preview"
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
WEATHER = {"type": "function", "function": {"name": "weather", "description": "Now", "parameters": SCHEMA}}
PNG = "data:image/png;base64,iVBORw0KGgo="
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def encode(prompt: Any = "Hi", model: str = MODEL, **parameters: Any) -> EncodedRequest:
    made = adapter.encode(Request.build(model, prompt, parameters), resolve(model))
    canonical(made.payload)
    return made


def payload_of(prompt: Any = "Hi", model: str = MODEL, **parameters: Any) -> dict[str, Any]:
    return encode(prompt, model, **parameters).payload


def settings(model: str = MODEL, **parameters: Any) -> dict[str, Any]:
    return dict(payload_of(model=model, **parameters)["generationConfig"])


def user(*parts: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"role": "user", "content": list(parts)}]


def reply(*parts: dict[str, Any], finish: str | None = "STOP", **fields: Any) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": list(parts)}}
    if finish is not None:
        candidate["finishReason"] = finish
    return {"candidates": [candidate], "responseId": "r1", "modelVersion": "gemini-3.1-pro", **fields}


# What goes out


def test_a_plain_prompt_is_contents_only() -> None:
    assert encode() == EncodedRequest(
        f"v1/models/{MODEL}:generateContent",
        {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]},
        samples_field=("generationConfig", "candidateCount"),
        most_samples=8,
    )


def test_two_models_never_share_a_cache_entry() -> None:
    assert encode(model="gemini-3.8-flash").operation != encode(model="gemini-3.7-flash").operation


@pytest.mark.parametrize(
    ("model", "operation"),
    [
        ("gemini-flash-latest", "v1beta/models/gemini-flash-latest:generateContent"),
        ("gemini/tunedModels/mine", "v1/tunedModels/mine:generateContent"),
        ("gemini/models/gemini-3.8-flash", "v1/models/gemini-3.8-flash:generateContent"),
    ],
)
def test_the_operation_names_the_api_version_and_the_model(model: str, operation: str) -> None:
    assert encode(model=model).operation == operation


def test_every_parameter_has_its_place() -> None:
    assert settings(
        temperature=0.5, top_p=0.9, max_tokens=100, stop=["END"], seed=7, n=3, logprobs=True, top_logprobs=5
    ) == {
        "temperature": 0.5,
        "topP": 0.9,
        "maxOutputTokens": 100,
        "stopSequences": ["END"],
        "seed": 7,
        "responseLogprobs": True,
        "logprobs": 5,
    }


def test_temperature_zero_is_sent_and_an_unset_one_is_not() -> None:
    assert settings(temperature=0) == {"temperature": 0}
    assert "generationConfig" not in payload_of()


def test_the_number_of_samples_is_no_part_of_what_is_asked() -> None:
    assert encode(n=9) == encode(n=1)


def test_headers_that_the_user_adds_are_part_of_the_request() -> None:
    assert encode(extra_headers={"X-Goog-Extra": "1"}).headers == {"x-goog-extra": "1"}


@pytest.mark.parametrize(
    ("model", "parameters", "parameter"),
    [
        ("gemini-3.8-flash", {"temperature": 0}, "temperature"),
        ("gemini-3.7-flash", {"top_p": 0.5}, "top_p"),
        ("gemini-3.6-flash", {"temperature": 1.0}, "temperature"),
        ("gemini-3.5-flash-lite", {"temperature": 1.0}, "temperature"),
        (MODEL, {"seed": 2**31}, "seed"),
        (MODEL, {"reasoning_effort": "none"}, "reasoning_effort='none'"),
        (MODEL, {"reasoning_effort": "minimal"}, "reasoning_effort='minimal'"),
        ("gemini-3-pro-preview", {"reasoning_effort": "medium"}, "reasoning_effort='medium'"),
        ("gemini-3.8-flash", {"reasoning_effort": "minimal"}, "reasoning_effort='minimal'"),
        ("gemini-4-argon", {"reasoning_effort": "max"}, "reasoning_effort='max'"),
        ("gemini-2.5-pro", {"reasoning_effort": "none"}, "reasoning_effort='none'"),
        ("gemini-2.0-flash", {"reasoning_effort": "low"}, "reasoning_effort='low'"),
        ("gemini-2.5-flash-image", {"reasoning_effort": "low"}, "reasoning_effort='low'"),
    ],
)
def test_what_a_model_does_not_take_is_refused(
    model: str, parameters: dict[str, Any], parameter: str
) -> None:
    with pytest.raises(UnsupportedParameterError) as caught:
        payload_of(model=model, **parameters)
    assert caught.value.parameter == parameter
    assert model in str(caught.value)
    assert caught.value.provider == "gemini"


@pytest.mark.parametrize(
    ("model", "effort", "config"),
    [
        ("gemini-3.8-flash", "low", {"thinkingLevel": "low", "includeThoughts": True}),
        ("gemini-3-flash-preview", "minimal", {"thinkingLevel": "minimal", "includeThoughts": True}),
        ("gemini-4-argon", "xhigh", {"thinkingLevel": "xhigh", "includeThoughts": True}),
        ("gemini-2.5-flash", "none", {"thinkingBudget": 0}),
        ("gemini-2.5-flash-lite", "minimal", {"thinkingBudget": 1024, "includeThoughts": True}),
        ("gemini-2.5-pro", "medium", {"thinkingBudget": 8192, "includeThoughts": True}),
        ("gemini-flash-latest", "high", {"thinkingLevel": "high", "includeThoughts": True}),
        ("gemini-9-new", "xhigh", {"thinkingLevel": "xhigh", "includeThoughts": True}),
    ],
)
def test_effort_is_a_level_or_a_budget(model: str, effort: str, config: dict[str, Any]) -> None:
    assert settings(model=model, reasoning_effort=effort) == {"thinkingConfig": config}


@pytest.mark.parametrize(
    ("effort", "config"),
    [
        ("low", {"thinkingConfig": {"thinkingBudget": 5}}),
        ("low", {"thinking_config": {"thinking_level": "high"}}),
        (None, {"thinkingConfig": {"thinkingBudget": 5, "thinkingLevel": "low"}}),
        (None, {"thinkingConfig": {"thinkingBudget": 5, "thinking_level": "low"}}),
    ],
)
def test_a_level_and_a_budget_never_go_together(effort: str | None, config: dict[str, Any]) -> None:
    with pytest.raises(RequestError, match="leave one out"):
        payload_of(reasoning_effort=effort, extra_body={"generationConfig": config})


def test_thoughts_can_be_left_out_of_the_answer() -> None:
    body = {"generationConfig": {"thinkingConfig": {"includeThoughts": False}}}
    assert settings(reasoning_effort="low", extra_body=body)["thinkingConfig"] == {
        "thinkingLevel": "low",
        "includeThoughts": False,
    }


def test_extra_body_is_merged_last() -> None:
    body = {"safetySettings": [], "generationConfig": {"topK": 3, "maxOutputTokens": 9}}
    payload = payload_of(max_tokens=5, extra_body=body)
    assert payload["generationConfig"] == {"maxOutputTokens": 9, "topK": 3}
    assert payload["safetySettings"] == []


class City(BaseModel):
    name: str


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"type": "json_object"}, {"responseMimeType": "application/json"}),
        (
            {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA, "strict": True}},
            {"responseMimeType": "application/json", "responseJsonSchema": SCHEMA},
        ),
        (City, {"responseMimeType": "application/json", "responseJsonSchema": City.model_json_schema()}),
    ],
)
def test_response_formats(asked: Any, expected: dict[str, Any]) -> None:
    assert settings(response_format=asked) == expected


def test_plain_text_is_no_format() -> None:
    assert "generationConfig" not in payload_of(response_format={"type": "text"})


@pytest.mark.parametrize(
    ("choice", "calling"),
    [
        ("auto", {"mode": "AUTO"}),
        ("none", {"mode": "NONE"}),
        ("required", {"mode": "ANY"}),
        (
            {"type": "function", "function": {"name": "weather"}},
            {"mode": "ANY", "allowedFunctionNames": ["weather"]},
        ),
    ],
)
def test_tool_choices(choice: Any, calling: dict[str, Any]) -> None:
    payload = payload_of(tools=[WEATHER], tool_choice=choice)
    assert payload["toolConfig"] == {"functionCallingConfig": calling}


def test_tools_are_declared_with_their_json_schema() -> None:
    bare = {"type": "function", "function": {"name": "now"}}
    payload = payload_of(tools=[WEATHER, bare])
    weather = {"name": "weather", "description": "Now", "parametersJsonSchema": SCHEMA}
    assert payload["tools"] == [{"functionDeclarations": [weather, {"name": "now"}]}]
    assert "toolConfig" not in payload


def test_strict_tools_are_validated() -> None:
    strict = {"type": "function", "function": {"name": "now", "strict": True}}
    assert payload_of(tools=[strict])["toolConfig"] == {"functionCallingConfig": {"mode": "VALIDATED"}}


def test_tools_of_another_type_are_refused() -> None:
    with pytest.raises(UnsupportedParameterError, match="extra_body"):
        payload_of(tools=[{"type": "custom", "function": {"name": "x"}}])


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
        (user({"type": "text", "text": "x", "cache_control": {}}), "messages[0].content[0].cache_control"),
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
        ([{"role": "user", "content": "x", "name": "Ann"}], "messages[0].name"),
        ([{"role": "assistant", "content": "x", "audio": {"id": "a"}}], "messages[0].audio"),
        ([{"role": "assistant", "content": None, "tool_calls": [{}]}], "messages[0].tool_calls[0]"),
        (
            [{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "[1]"}}]}],
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
    contents = payload_of([{"role": "user", "content": "Hi"}, answer, {"role": "user", "content": "Bye"}])[
        "contents"
    ]
    assert contents[1] == {"role": "model", "parts": [{"text": "Hello"}]}


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


# An answer of Gemini's own in the next turn

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
        {"provider_specific_fields": {"provider": "anthropic", "content": ANSWER}},
    ],
)
def test_an_edited_answer_is_what_it_says_now(edit: dict[str, Any]) -> None:
    message = {**adapter.decode(reply(*ANSWER)).choices[0].message, **edit}
    parts = replayed(message)[1]["parts"]
    assert parts != ANSWER
    assert parts[0]["text"] == ("Two moments" if edit.get("content") == "Two moments" else "One moment")


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


# What comes back


def test_text_thoughts_usage_and_names() -> None:
    counts = {
        "promptTokenCount": 100,
        "toolUsePromptTokenCount": 7,
        "cachedContentTokenCount": 40,
        "candidatesTokenCount": 10,
        "thoughtsTokenCount": 30,
    }
    answer = adapter.decode(
        reply({"text": "Hm", "thought": True}, {"text": "Hel"}, {"text": "lo"}, usageMetadata=counts)
    )
    choice = answer.choices[0]
    assert (choice.text, choice.reasoning, choice.finish_reason) == ("Hello", "Hm", "stop")
    assert (answer.id, answer.model) == ("r1", "gemini-3.1-pro")
    assert answer.usage == Usage(
        input_tokens=107, output_tokens=40, cache_read_input_tokens=40, reasoning_output_tokens=30
    )


def test_calls_without_ids_get_lasting_ones() -> None:
    body = reply({"functionCall": {"name": "a"}}, {"functionCall": {"name": "b", "args": {"x": "é"}}})
    choice = adapter.decode(body).choices[0]
    assert choice.finish_reason == "tool_calls"
    assert choice.tool_calls == (
        ToolCall(id="call_r1_0", name="a", arguments="{}"),
        ToolCall(id="call_r1_1", name="b", arguments='{"x":"é"}'),
    )
    assert choice.message["tool_calls"][1]["function"] == {"name": "b", "arguments": '{"x":"é"}'}
    assert choice == adapter.decode(body).choices[0]


def test_samples_come_in_the_order_of_their_index() -> None:
    candidates = [
        {"index": 1, "content": {"parts": [{"text": "second"}]}, "finishReason": "STOP"},
        {"content": {"parts": [{"text": "first"}]}, "finishReason": "STOP", "logprobsResult": {"x": 1}},
    ]
    answer = adapter.decode({"candidates": candidates})
    assert [choice.text for choice in answer.choices] == ["first", "second"]
    assert answer.choices[0].logprobs == {"x": 1}
    assert answer.usage is None


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("STOP", "stop"),
        ("MAX_TOKENS", "length"),
        ("SAFETY", "content_filter"),
        ("RECITATION", "content_filter"),
        ("BLOCKLIST", "content_filter"),
        ("PROHIBITED_CONTENT", "content_filter"),
        ("SPII", "content_filter"),
        ("IMAGE_SAFETY", "content_filter"),
    ],
)
def test_finish_reasons(word: str, reason: str) -> None:
    assert adapter.decode(reply(finish=word)).choices[0].finish_reason == reason


@pytest.mark.parametrize(
    ("word", "retryable"),
    [
        ("MALFORMED_FUNCTION_CALL", True),
        ("UNEXPECTED_TOOL_CALL", True),
        ("OTHER", True),
        ("FINISH_REASON_UNSPECIFIED", True),
        ("A_WORD_OF_TOMORROW", True),
        ("MISSING_THOUGHT_SIGNATURE", False),
        ("CONTINUATION", False),
    ],
)
def test_an_answer_that_failed_is_no_answer(word: str, retryable: bool) -> None:
    with pytest.raises(APIResponseValidationError) as caught:
        adapter.decode(reply({"text": "x"}, finish=word))
    assert (caught.value.code, caught.value.retryable) == (word, retryable)


def test_a_blocked_prompt_is_a_filtered_answer() -> None:
    body = {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": {"promptTokenCount": 3}}
    answer = adapter.decode(body)
    assert [choice.finish_reason for choice in answer.choices] == ["content_filter"]
    assert answer.usage == Usage(input_tokens=3)


@pytest.mark.parametrize(
    "body",
    [
        None,
        [],
        {},
        {"candidates": []},
        {"candidates": {"0": {}}},
        {"candidates": [None]},
        {"promptFeedback": {}},
        reply({"text": "x"}, finish=None),
        reply({"text": 7}),
        reply({"functionCall": {"args": {}}}),
        reply({"functionCall": {"name": "x", "args": "y"}}),
        {"candidates": [{"content": "x", "finishReason": "STOP"}]},
        {"candidates": [{"content": {"parts": {}}, "finishReason": "STOP"}]},
    ],
)
def test_malformed_answers(body: Any) -> None:
    with pytest.raises(APIResponseValidationError):
        adapter.decode(body)


def test_an_error_with_status_200_is_an_error() -> None:
    with pytest.raises(OverloadedError) as caught:
        adapter.decode({"error": {"code": 503, "status": "UNAVAILABLE", "message": "later"}})
    assert caught.value.maybe_billed


PIECES = st.recursive(
    JSON_VALUES,
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "candidates": st.lists(inner, max_size=2) | inner,
            "content": inner,
            "parts": st.lists(inner, max_size=3) | inner,
            "text": st.text(max_size=3) | inner,
            "thought": inner,
            "functionCall": inner,
            "name": st.text(max_size=3) | inner,
            "args": inner,
            "finishReason": st.sampled_from(["STOP", "OTHER"]) | inner,
            "index": inner,
            "logprobsResult": inner,
            "promptFeedback": inner,
            "blockReason": inner,
            "usageMetadata": inner,
            "error": inner,
            "details": st.lists(inner, max_size=2) | inner,
            "violations": inner,
            "retryDelay": inner,
        },
    ),
    max_leaves=12,
)


@given(PIECES)
def test_no_answer_breaks_the_decoder(body: Any) -> None:
    with suppress(LLMError):
        adapter.decode(body)


@given(st.lists(PIECES, max_size=3))
def test_no_stream_breaks_the_assembler(events: list[Any]) -> None:
    assembler = adapter.Assembler()
    with suppress(LLMError):
        for event in events:
            assembler.feed(event)
        adapter.decode(assembler.reply())


@given(PIECES, st.sampled_from([None, 200, 302, 400, 429, 500]))
def test_no_error_body_breaks_the_mapping(body: Any, status: int | None) -> None:
    assert isinstance(error_of(body, status=status), LLMError)


# Streams


def cut_text(draw: st.DrawFn, entry: dict[str, Any]) -> list[dict[str, Any]]:
    """A text part as pieces of it; its signature comes with the last piece or with an empty one after it."""
    if "functionCall" in entry:
        return [entry]
    plain = {name: value for name, value in entry.items() if name != "thoughtSignature"}
    text = entry["text"]
    places = sorted(draw(st.lists(st.integers(0, len(text)), max_size=3)))
    bounds = [0, *places, len(text)]
    pieces = [{**plain, "text": text[a:b]} for a, b in itertools.pairwise(bounds)]
    if "thoughtSignature" in entry:
        if draw(st.booleans()):
            pieces.append({**plain, "text": ""})
        pieces[-1] = {**pieces[-1], "thoughtSignature": entry["thoughtSignature"]}
    return pieces


@st.composite
def replies_and_streams(draw: st.DrawFn) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """An answer, and events that add up to it."""
    thought = draw(st.none() | st.text(max_size=12))
    text = draw(st.none() | st.text(max_size=12))
    calls = draw(st.lists(st.dictionaries(st.text(max_size=3), JSON_VALUES, max_size=2), max_size=2))
    parts: list[dict[str, Any]] = []
    if thought is not None:
        parts.append({"text": thought, "thought": True})
    if text is not None:
        parts.append({"text": text} | ({"thoughtSignature": "c2ln"} if draw(st.booleans()) else {}))
    parts += [{"functionCall": {"name": "f", "args": args}, "thoughtSignature": "c2ln"} for args in calls]
    head = {"responseId": "r", "modelVersion": "m"}
    candidate = {"content": {"role": "model"}, "index": 0, "finishReason": "STOP"}
    usage = {"promptTokenCount": 5, "candidatesTokenCount": 9}
    if parts:
        candidate["content"] = {"role": "model", "parts": parts}
    whole = {"candidates": [candidate], "usageMetadata": usage, **head}
    pieces = [piece for entry in parts for piece in cut_text(draw, entry)]
    events: list[dict[str, Any]] = []
    while pieces:
        size = draw(st.integers(1, len(pieces)))
        content = {"role": "model", "parts": pieces[:size]}
        counts = {"promptTokenCount": 5, "candidatesTokenCount": 1}
        events.append({"candidates": [{"content": content, "index": 0}], "usageMetadata": counts, **head})
        pieces = pieces[size:]
    if events and draw(st.booleans()):
        events[-1]["candidates"][0]["finishReason"] = "STOP"
        events[-1]["usageMetadata"] = usage
    else:
        last = {"content": {"role": "model"}, "index": 0, "finishReason": "STOP"}
        events.append({"candidates": [last], "usageMetadata": usage, **head})
    return whole, events


@given(replies_and_streams())
def test_a_stream_adds_up_to_the_answer_however_it_is_cut(
    both: tuple[dict[str, Any], list[dict[str, Any]]],
) -> None:
    whole, events = both
    assembler = adapter.Assembler()
    deltas = [delta_of(assembler.feed(event)) for event in json.loads(json.dumps(events))]
    assembled = assembler.reply()
    assert assembled == whole
    choice = adapter.decode(whole).choices[0]
    assert "".join(delta.text for delta in deltas) == choice.text
    assert "".join(delta.reasoning for delta in deltas) == choice.reasoning
    calls = [call for delta in deltas for call in delta.tool_calls]
    assert calls == [
        ToolCallDelta(index=index, id=call.id, name=call.name, arguments=call.arguments)
        for index, call in enumerate(choice.tool_calls)
    ]


def test_samples_of_a_stream_are_kept_apart_and_the_first_is_shown() -> None:
    assembler = adapter.Assembler()
    shown = [
        assembler.feed({"candidates": [{"content": {"parts": [{"text": text}]}, "index": index, **end}]})
        for text, index, end in [
            ("a", 0, {}),
            ("x", 1, {}),
            ("b", 0, {"finishReason": "STOP"}),
            ("y", 1, {"finishReason": "STOP"}),
        ]
    ]
    assert shown == ["a", "", "b", ""]
    assert [choice.text for choice in adapter.decode(assembler.reply()).choices] == ["ab", "xy"]


def test_log_probabilities_of_a_stream_add_up() -> None:
    assembler = adapter.Assembler()
    for token, end in (("a", {}), ("b", {"finishReason": "STOP"})):
        result = {"chosenCandidates": [{"token": token}], "topCandidates": [{"candidates": []}]}
        assembler.feed({"candidates": [{"content": {}, "logprobsResult": result, **end}]})
    assert adapter.decode(assembler.reply()).choices[0].logprobs == {
        "chosenCandidates": [{"token": "a"}, {"token": "b"}],
        "topCandidates": [{"candidates": []}, {"candidates": []}],
    }


@pytest.mark.parametrize("events", [[], [{}], [reply({"text": "x"}, finish=None)], [{"usageMetadata": {}}]])
def test_a_stream_without_its_end_is_no_answer(events: list[dict[str, Any]]) -> None:
    assembler = adapter.Assembler()
    for event in events:
        assembler.feed(event)
    with pytest.raises(APIResponseValidationError, match="cut"):
        assembler.reply()


def test_a_blocked_prompt_in_a_stream() -> None:
    assembler = adapter.Assembler()
    assembler.feed({"promptFeedback": {"blockReason": "SAFETY"}})
    assert adapter.decode(assembler.reply()).choices[0].finish_reason == "content_filter"


def test_an_error_event_ends_the_stream() -> None:
    with pytest.raises(InternalServerError):
        adapter.Assembler().feed({"error": {"status": "INTERNAL", "message": "oops"}})


# Errors


def google_error(status: str, message: str = "m", *details: dict[str, Any]) -> dict[str, Any]:
    return {"error": {"status": status, "message": message, "details": list(details)}}


PER_DAY = {"violations": [{"quotaId": "PerMinute"}, {"quotaId": "GenerateRequestsPerDayPerProjectPerModel"}]}


@pytest.mark.parametrize(
    ("status", "body", "kind", "code", "wait"),
    [
        (429, google_error("RESOURCE_EXHAUSTED"), RateLimitError, "RESOURCE_EXHAUSTED", None),
        (
            429,
            google_error("RESOURCE_EXHAUSTED", "m", {"@type": "x"}, {"retryDelay": "27.39s"}),
            RateLimitError,
            "RESOURCE_EXHAUSTED",
            27.39,
        ),
        (
            429,
            google_error("RESOURCE_EXHAUSTED", "m", {"retryDelay": "9s"}, PER_DAY),
            QuotaExceededError,
            "GenerateRequestsPerDayPerProjectPerModel",
            9.0,
        ),
        (
            400,
            google_error("INVALID_ARGUMENT", "m", {"reason": "API_KEY_INVALID"}),
            AuthenticationError,
            "invalid_api_key",
            None,
        ),
        (
            400,
            google_error("INVALID_ARGUMENT", "API key expired. Please renew the API key."),
            AuthenticationError,
            "invalid_api_key",
            None,
        ),
        (
            400,
            google_error(
                "INVALID_ARGUMENT", "The input token count (9) exceeds the maximum number of tokens"
            ),
            ContextWindowExceededError,
            "INVALID_ARGUMENT",
            None,
        ),
        (503, None, OverloadedError, None, None),
        (503, "full", OverloadedError, None, None),
        (
            502,
            {"message": "<html><title>Bad</title></html>", "status": "Bad Gateway"},
            InternalServerError,
            None,
            None,
        ),
        (302, {"message": "", "status": "Found"}, APIResponseValidationError, None, None),
    ],
)
def test_googles_errors(
    status: int, body: Any, kind: type[LLMError], code: str | None, wait: float | None
) -> None:
    error = error_of(body, status=status)
    assert (type(error), error.code, error.retry_after, error.status) == (kind, code, wait, status)


def test_only_an_open_connection_needs_the_sdk() -> None:
    program = """
import sys
from llm_provider._requests.request import Request
from llm_provider._requests.routing import resolve
from llm_provider._providers.registry import load
gemini = load("gemini")
gemini.encode(Request.build("gemini-3.8-flash", "Hi", {}), resolve("gemini-3.8-flash"))
gemini.decode({"promptFeedback": {"blockReason": "SAFETY"}})
gemini.map_error(ValueError("x"))
print([name for name in ("google.genai", "aiohttp", "httpx2", "pydantic", "ssl") if name in sys.modules])
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
