"""The request for a count has the fields that the SDK's types have, and no other."""

from __future__ import annotations

from anthropic.types import MessageCountTokensParams

from llm_provider._calls.chat import CHAT
from llm_provider._providers import registry
from llm_provider._providers.anthropic import token_counts
from llm_provider._requests.request import Request
from llm_provider._requests.routing import resolve


def test_fields_of_the_answer_are_left_out() -> None:
    target = resolve("claude-sonnet-4-5")
    request = Request.build(
        "claude-sonnet-4-5",
        "hello",
        {"system": "Be brief.", "max_tokens": 5000, "stop": "END", "thinking_budget": 2000}
        | {"metadata": None, "tools": ["web_search"], "extra_headers": {"X-A": "b"}},
    )
    encoded = token_counts.encode(CHAT.encode(request, target, registry.load("anthropic")), target)
    assert encoded.operation == "messages/count_tokens"
    assert encoded.payload.keys() == {"model", "messages", "system", "tools", "thinking"}
    assert encoded.headers["x-a"] == "b"
    assert set(token_counts._COUNTED) <= MessageCountTokensParams.__annotations__.keys()
