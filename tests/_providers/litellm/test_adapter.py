"""The litellm adapter: keyword arguments, and signed thinking."""

from __future__ import annotations

from typing import Any

import pytest

from litellm_support import ANTHROPIC, OPENAI
from llm_provider._errors import RequestError
from llm_provider._providers.adapter import EncodedRequest
from llm_provider._providers.litellm import adapter
from llm_provider._requests.request import Request
from llm_provider._requests.routing import resolve


def encode(messages: Any, model: str = ANTHROPIC, **parameters: Any) -> EncodedRequest:
    return adapter.encode(Request.build(model, messages, parameters), resolve(model))


class TestEncode:
    def test_the_payload_is_a_chat_completion(self) -> None:
        encoded = encode("Hi", temperature=0.5, seed=3, n=2, extra_body={"top_k": 5})
        assert encoded.payload == {
            "model": "anthropic/claude-sonnet-5-5",
            "messages": [{"role": "user", "content": "Hi"}],
            "temperature": 0.5,
            "seed": 3,
            "top_k": 5,
        }
        assert encoded.samples_field == ()

    @pytest.mark.parametrize(
        "name", ["api_key", "api_base", "timeout", "num_retries", "extra_headers", "stream"]
    )
    def test_extra_body_cannot_hold_what_belongs_to_the_call(self, name: str) -> None:
        with pytest.raises(RequestError, match=name):
            encode("Hi", extra_body={name: "x"})

    def test_signed_thinking_goes_back_to_anthropics_models_only(self) -> None:
        thinking = [{"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}]
        message = {
            "role": "assistant",
            "content": "Ho",
            "provider_specific_fields": {"provider": "litellm", "content": {"thinking_blocks": thinking}},
        }
        conversation = [{"role": "user", "content": "Hi"}, message, {"role": "user", "content": "Go on"}]
        assert encode(conversation).payload["messages"][1] == {
            "role": "assistant",
            "content": "Ho",
            "thinking_blocks": thinking,
        }
        with pytest.warns(UserWarning, match="an earlier answer holds thinking_blocks, for which"):
            assert encode(conversation, OPENAI).payload["messages"][1] == {
                "role": "assistant",
                "content": "Ho",
            }
        foreign = {**message, "provider_specific_fields": {"provider": "anthropic", "content": thinking}}
        with pytest.warns(UserWarning, match="an earlier answer holds thinking, for which"):
            assert "thinking_blocks" not in encode([foreign]).payload["messages"][0]


def chunk(finish_reason: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]}


def test_thinking_is_put_together_from_its_pieces() -> None:
    assembler = adapter.assembler(EncodedRequest("chat/completions", {}))
    pieces = [
        {"type": "thinking", "thinking": "One", "signature": None},
        {"type": "thinking", "thinking": " two"},
        {"type": "thinking", "thinking": "", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "eA=="},
        {"type": "thinking", "thinking": "Three"},
        {"type": "thinking", "thinking": "", "signature": "dHdv"},
    ]
    for piece in pieces:
        assembler.feed(chunk(thinking_blocks=[piece]))
    assembler.feed(chunk(content="Ho"))
    assembler.feed(chunk("stop"))
    assembler.feed({"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 2}})
    message = adapter.decode(assembler.reply()).choices[0].message
    assert message["provider_specific_fields"]["content"]["thinking_blocks"] == [
        {"type": "thinking", "thinking": "One two", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "eA=="},
        {"type": "thinking", "thinking": "Three", "signature": "dHdv"},
    ]
