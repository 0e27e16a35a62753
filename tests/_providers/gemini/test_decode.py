"""Gemini's replies, streams and errors."""

import itertools
import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gemini_payloads import reply
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
from llm_provider._providers.gemini.decode import Assembler, decode, error_of
from llm_provider._types import ToolCall, ToolCallDelta, Usage, delta_of

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


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
        {"content": {"parts": [{"text": "first"}]}, "finishReason": "STOP", "logprobsResult": {"x": 1}},
    ]
    answer = decode({"candidates": candidates})
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
    assert decode(reply(finish=word)).choices[0].finish_reason == reason


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
        decode(reply({"text": "x"}, finish=word))
    assert (caught.value.code, caught.value.retryable) == (word, retryable)


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
        decode(body)


def test_an_error_with_status_200_is_an_error() -> None:
    with pytest.raises(OverloadedError) as caught:
        decode({"error": {"code": 503, "status": "UNAVAILABLE", "message": "later"}})
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
        decode(body)


@given(st.lists(PIECES, max_size=3))
def test_no_stream_breaks_the_assembler(events: list[Any]) -> None:
    assembler = Assembler()
    with suppress(LLMError):
        for event in events:
            assembler.feed(event)
        decode(assembler.reply())


@given(PIECES, st.sampled_from([None, 200, 302, 400, 429, 500]))
def test_no_error_body_breaks_the_mapping(body: Any, status: int | None) -> None:
    assert isinstance(error_of(body, status=status), LLMError)


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
    assembler = Assembler()
    deltas = [delta_of(assembler.feed(event)) for event in json.loads(json.dumps(events))]
    assembled = assembler.reply()
    assert assembled == whole
    choice = decode(whole).choices[0]
    assert "".join(delta.text for delta in deltas) == choice.text
    assert "".join(delta.reasoning for delta in deltas) == choice.reasoning
    calls = [call for delta in deltas for call in delta.tool_calls]
    assert calls == [
        ToolCallDelta(index=index, id=call.id, name=call.name, arguments=call.arguments)
        for index, call in enumerate(choice.tool_calls)
    ]


def test_samples_of_a_stream_are_kept_apart_and_the_first_is_shown() -> None:
    assembler = Assembler()
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
    assert [choice.text for choice in decode(assembler.reply()).choices] == ["ab", "xy"]


def test_log_probabilities_of_a_stream_add_up() -> None:
    assembler = Assembler()
    for token, end in (("a", {}), ("b", {"finishReason": "STOP"})):
        result = {"chosenCandidates": [{"token": token}], "topCandidates": [{"candidates": []}]}
        assembler.feed({"candidates": [{"content": {}, "logprobsResult": result, **end}]})
    assert decode(assembler.reply()).choices[0].logprobs == {
        "chosenCandidates": [{"token": "a"}, {"token": "b"}],
        "topCandidates": [{"candidates": []}, {"candidates": []}],
    }


@pytest.mark.parametrize("events", [[], [{}], [reply({"text": "x"}, finish=None)], [{"usageMetadata": {}}]])
def test_a_stream_without_its_end_is_no_answer(events: list[dict[str, Any]]) -> None:
    assembler = Assembler()
    for event in events:
        assembler.feed(event)
    with pytest.raises(APIResponseValidationError, match="cut"):
        assembler.reply()


def test_a_blocked_prompt_in_a_stream() -> None:
    assembler = Assembler()
    assembler.feed({"promptFeedback": {"blockReason": "SAFETY"}})
    assert decode(assembler.reply()).choices[0].finish_reason == "content_filter"


def test_an_error_event_ends_the_stream() -> None:
    with pytest.raises(InternalServerError):
        Assembler().feed({"error": {"status": "INTERNAL", "message": "oops"}})


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
