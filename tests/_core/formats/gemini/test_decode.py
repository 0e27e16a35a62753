"""The bodies of Gemini's errors."""

import json
from typing import Any

import pytest
from google.genai import _extra_utils, types
from hypothesis import given, settings
from hypothesis import strategies as st

from gemini_payloads import PIECES
from llm_provider._core.errors import LLMError
from llm_provider._core.formats.gemini.decode import continuation, error_of, join


@settings(max_examples=15)  # to draw one takes 0.1 s; tests/fuzz changes golden errors
@given(PIECES, st.sampled_from([None, 200, 302, 400, 429, 500]))
def test_no_error_body_breaks_the_mapping(body: Any, status: int | None) -> None:
    assert isinstance(error_of(body, status=status), LLMError)


# Replies of one divided answer, joined as google-genai joins them.


TOKEN = "dG9rZW4="

FIRST: dict[str, Any] = {
    "candidates": [
        {
            "content": {"role": "model", "parts": [{"text": "one, "}, {"text": "Hm", "thought": True}]},
            "finishReason": "CONTINUATION",
            "continuationToken": TOKEN,
            "index": 0,
            "groundingMetadata": {
                "webSearchQueries": ["a"],
                "groundingChunks": [{"web": {"uri": "https://example.org/1"}}],
                "groundingSupports": [{"segment": {"text": "one"}, "groundingChunkIndices": [0]}],
            },
            "citationMetadata": {"citations": [{"uri": "https://example.org/c"}]},
            "logprobsResult": {"chosenCandidates": [{"token": "one"}], "logProbabilitySum": -0.5},
        },
        {"content": {"role": "model", "parts": [{"text": "other"}]}, "finishReason": "STOP", "index": 1},
    ],
    "usageMetadata": {"promptTokenCount": 7, "candidatesTokenCount": 3, "totalTokenCount": 10},
    "modelVersion": "m",
    "responseId": "r",
}
LAST: dict[str, Any] = {
    "candidates": [
        {
            "content": {"role": "model", "parts": [{"text": "two"}]},
            "finishReason": "STOP",
            "finishMessage": "done",
            "index": 0,
            "groundingMetadata": {
                "groundingChunks": [{"web": {"uri": "https://example.org/2"}}],
                "groundingSupports": [{"segment": {"text": "two"}, "groundingChunkIndices": [0]}],
            },
            "citationMetadata": {"citations": [{"uri": "https://example.org/d"}]},
            "logprobsResult": {"chosenCandidates": [{"token": "two"}], "logProbabilitySum": -0.25},
        }
    ],
    "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 2, "totalTokenCount": 11},
    "modelVersion": "m",
    "responseId": "r",
}
ENDLESS = {"candidates": [{**LAST["candidates"][0], "finishReason": None}]}
EMPTY = {"candidates": [{"finishReason": "MAX_TOKENS", "index": 0}], "usageMetadata": {"promptTokenCount": 1}}


@pytest.mark.parametrize("last", [LAST, ENDLESS, EMPTY])
def test_replies_are_joined_as_the_sdk_joins_them(last: dict[str, Any]) -> None:
    merge = getattr(_extra_utils, "merge_continuation_responses", None)
    if merge is None:
        pytest.skip("this release of google-genai does not go on")
    replies = [types.GenerateContentResponse.model_validate(reply) for reply in (FIRST, last)]
    joined = types.GenerateContentResponse.model_validate(join(FIRST, last))
    options: dict[str, Any] = {"exclude_none": True, "mode": "json"}
    assert joined.model_dump(**options) == merge(replies).model_dump(**options)


def test_what_a_reply_says_stays_as_it_was() -> None:
    before = json.dumps([FIRST, LAST])
    join(FIRST, LAST)
    assert json.dumps([FIRST, LAST]) == before


@pytest.mark.parametrize("reason", [None, "", "CONTINUATION", "STOP", "MAX_TOKENS", "SAFETY"])
def test_a_token_counts_where_the_answer_has_not_ended(reason: str | None) -> None:
    goes_on = reason in (None, "", "CONTINUATION")
    first = {"finishReason": reason, "continuationToken": TOKEN, "index": 0}
    fields = {"continuationToken": TOKEN} if goes_on else None
    assert continuation({"candidates": [first]}) == fields
    # As in the SDK, the token of the first candidate counts.
    assert continuation({"candidates": [{"index": 1, "finishReason": "STOP"}, first]}) == fields
    assert continuation({"candidates": [{**first, "continuationToken": ""}]}) is None
    assert continuation({"promptFeedback": {"blockReason": "SAFETY"}}) is None


def test_a_prompt_that_is_blocked_later_ends_the_answer() -> None:
    joined = join(FIRST, {"promptFeedback": {"blockReason": "SAFETY"}})
    assert [candidate["finishReason"] for candidate in joined["candidates"]] == ["SAFETY", "STOP"]
    assert continuation(joined) is None
