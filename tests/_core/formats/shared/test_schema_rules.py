"""Changes to schemas that several providers need."""

from __future__ import annotations

from typing import Any

from llm_provider._core.formats.protocol import EncodedRequest
from llm_provider._core.formats.shared.schema_rules import encode_with_prompt
from llm_provider._core.requests.request import Request


def encode_in_prompt(**parameters: Any) -> tuple[EncodedRequest, Request] | None:
    """The encoded request, and the request that it was encoded from."""
    requests: list[Request] = []

    def encode(request: Request) -> EncodedRequest:
        requests.append(request)
        return EncodedRequest("chat/completions", {})

    encoded = encode_with_prompt(Request.build("gpt-6.1-sol", "Hi", parameters), encode)  # type: ignore[arg-type]  # checked by `build`
    return None if encoded is None else (encoded, requests[0])


def test_what_is_no_object_is_wrapped_in_one() -> None:
    result = encode_in_prompt(response_format=list[int])
    assert result is not None
    assert '"required":["answer"]' in result[1].messages[0]["content"]


def test_only_a_schema_needs_it() -> None:
    assert encode_in_prompt(response_format={"type": "json_object"}) is None
    assert encode_in_prompt() is None
