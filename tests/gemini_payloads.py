"""Payloads and replies of Gemini for tests without a network."""

from typing import Any

from hypothesis import strategies as st

from llm_provider._core.formats.gemini import encode as adapter
from llm_provider._core.formats.protocol import EncodedRequest
from llm_provider._core.requests.request import Request
from llm_provider._core.requests.routing import resolve
from llm_provider._core.runtime.json_pieces import canonical
from openai_support import JSON_VALUES

MODEL = "gemini-3.1-pro-preview"


def encode(prompt: Any = "Hi", model: str = MODEL, **parameters: Any) -> EncodedRequest:
    made = adapter.encode(Request.build(model, prompt, parameters), resolve(model))
    canonical(made.payload)
    return made


def payload_of(prompt: Any = "Hi", model: str = MODEL, **parameters: Any) -> dict[str, Any]:
    return encode(prompt, model, **parameters).payload


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
            "partialArgs": st.lists(inner, max_size=2) | inner,
            "jsonPath": st.sampled_from(["$.a", "$.a.b", "$.a[0]", "$.a[1].b", "$[0]", "$"]) | inner,
            "stringValue": st.text(max_size=2) | inner,
            "willContinue": inner,
            "responseId": inner,
            "finishReason": st.sampled_from(["STOP", "OTHER", "UNEXPECTED_TOOL_CALL"]) | inner,
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
