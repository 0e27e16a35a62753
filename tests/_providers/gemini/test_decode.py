"""Gemini's replies, streams and errors."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gemini_payloads import PIECES, reply
from llm_provider._errors import (
    APIResponseValidationError,
    AuthenticationError,
    ContextWindowExceededError,
    InternalServerError,
    LLMError,
    OverloadedError,
    QuotaExceededError,
    RateLimitError,
)
from llm_provider._providers.gemini.decode import decode, error_of
from llm_provider._types.logprobs import TokenLogprob
from llm_provider._types.messages import ToolCall
from llm_provider._types.usage import Usage

LOGPROBS = {"x": 1, "chosenCandidates": [{"token": "first", "tokenId": 7, "logProbability": -0.5}]}


def test_text_thoughts_usage_and_names() -> None:
    counts = {
        "promptTokenCount": 100,
        "toolUsePromptTokenCount": 7,
        "cachedContentTokenCount": 40,
        "candidatesTokenCount": 10,
        "thoughtsTokenCount": 30,
    }
    answer = decode(
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
    choice = decode(body).choices[0]
    assert choice.finish_reason == "tool_calls"
    assert choice.tool_calls == (
        ToolCall(id="call_r1_0", name="a", arguments="{}"),
        ToolCall(id="call_r1_1", name="b", arguments='{"x":"é"}'),
    )
    assert choice.message["tool_calls"][1]["function"] == {"name": "b", "arguments": '{"x":"é"}'}
    assert choice == decode(body).choices[0]


def test_samples_come_in_the_order_of_their_index() -> None:
    candidates = [
        {"index": 1, "content": {"parts": [{"text": "second"}]}, "finishReason": "STOP"},
        {
            "content": {"parts": [{"text": "first"}]},
            "finishReason": "STOP",
            "logprobsResult": {
                "x": 1,
                "chosenCandidates": [{"token": "first", "tokenId": 7, "logProbability": -0.5}],
            },
        },
    ]
    answer = decode({"candidates": candidates})
    assert [choice.text for choice in answer.choices] == ["first", "second"]
    assert answer.choices[0].logprobs == (TokenLogprob(token="first", logprob=-0.5, id=7),)
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
        ("CONTINUATION", "length"),
        ("TOO_MANY_TOOL_CALLS", "length"),
    ],
)
def test_finish_reasons(word: str, reason: str) -> None:
    assert decode(reply(finish=word)).choices[0].finish_reason == reason


FAILED_WORDS = (
    "MALFORMED_FUNCTION_CALL",
    "UNEXPECTED_TOOL_CALL",
    "MALFORMED_RESPONSE",
    "MISSING_THOUGHT_SIGNATURE",
    "NO_IMAGE",
    "OTHER",
    "FINISH_REASON_UNSPECIFIED",
    "A_WORD_OF_TOMORROW",
)


@pytest.mark.parametrize("word", FAILED_WORDS)
@pytest.mark.parametrize("parts", [[], [{"text": "Hm", "thought": True}], [{"text": ""}]])
def test_a_failure_without_an_answer_is_never_sent_again(word: str, parts: list[dict[str, Any]]) -> None:
    body = reply(*parts, finish=word)
    body["candidates"][0]["finishMessage"] = "Malformed function call: print(weather(city='Bern'))"
    with pytest.raises(APIResponseValidationError, match="city='Bern'") as caught:
        decode(body)
    assert (caught.value.code, caught.value.retryable, caught.value.maybe_billed) == (word, False, True)


@pytest.mark.parametrize("word", [*FAILED_WORDS, None, ""])
def test_a_call_is_given_whatever_the_finish_reason(word: str | None) -> None:
    choice = decode(reply({"functionCall": {"name": "weather", "args": {}}}, finish=word)).choices[0]
    assert (choice.finish_reason, choice.tool_calls[0].name) == ("tool_calls", "weather")


@pytest.mark.parametrize("word", [*FAILED_WORDS[2:], None, ""])
@pytest.mark.parametrize("part", [{"text": "x"}, {"inlineData": {"mimeType": "image/png", "data": "AA=="}}])
def test_a_whole_answer_with_an_unknown_finish_reason_or_none_is_an_answer(
    word: str | None, part: dict[str, Any]
) -> None:
    choice = decode(reply(part, finish=word)).choices[0]
    assert (choice.finish_reason, choice.text) == ("stop", part.get("text", ""))
    assert choice.message["provider_specific_fields"]["content"] == [part]


@pytest.mark.parametrize("word", FAILED_WORDS[:2])
def test_a_text_before_a_call_that_failed_is_no_finished_answer(word: str) -> None:
    choice = decode(reply({"text": "I look it up"}, finish=word)).choices[0]
    assert (choice.text, choice.finish_reason) == ("I look it up", "length")


@pytest.mark.parametrize(
    ("counts", "tier"),
    [
        ({"trafficType": "ON_DEMAND_PRIORITY"}, "priority"),
        ({"trafficType": "ON_DEMAND_FLEX"}, "flex"),
        ({"trafficType": "ON_DEMAND"}, "standard"),
        ({"trafficType": "PROVISIONED_THROUGHPUT"}, None),
        ({"serviceTier": "FLEX", "trafficType": "ON_DEMAND"}, "flex"),
        ({}, None),
    ],
)
def test_the_service_level_that_served(counts: dict[str, Any], tier: str | None) -> None:
    assert decode(reply({"text": "x"}, usageMetadata=counts)).service_tier == tier


def test_a_blocked_prompt_is_a_filtered_answer() -> None:
    body = {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": {"promptTokenCount": 3}}
    answer = decode(body)
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
        reply({"text": 7}),
        reply({"functionCall": {"args": {}}}),
        reply({"functionCall": {"name": "x", "args": "y"}}),
        {"candidates": [{"content": "x", "finishReason": "STOP"}]},
        {"candidates": [{"content": {"parts": {}}, "finishReason": "STOP"}]},
    ],
)
def test_malformed_answers(body: Any) -> None:
    with pytest.raises(APIResponseValidationError):
        decode(body)


def test_an_error_with_status_200_is_an_error() -> None:
    with pytest.raises(OverloadedError) as caught:
        decode({"error": {"code": 503, "status": "UNAVAILABLE", "message": "later"}})
    assert caught.value.maybe_billed


@given(PIECES)
def test_no_answer_breaks_the_decoder(body: Any) -> None:
    with suppress(LLMError):
        decode(body)


@given(PIECES, st.sampled_from([None, 200, 302, 400, 429, 500]))
def test_no_error_body_breaks_the_mapping(body: Any, status: int | None) -> None:
    assert isinstance(error_of(body, status=status), LLMError)


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


WRONG_KEY = google_error("INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.")


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(WRONG_KEY),
        json.dumps([WRONG_KEY], indent=2),
        f"data: {json.dumps(WRONG_KEY)}\r\n\r\n",
        f"event: error\ndata: {json.dumps(WRONG_KEY)}",
    ],
)
def test_an_error_in_a_body_of_another_type_is_read(text: str) -> None:
    error = error_of({"message": text, "status": "Bad Request"}, status=400)
    assert (type(error), error.message) == (AuthenticationError, WRONG_KEY["error"]["message"])
    assert type(error_of([WRONG_KEY], status=400)) is AuthenticationError
