"""Signed thinking in the replies of litellm."""

from typing import Any

from llm_provider._providers.litellm import adapter
from llm_provider._providers.protocol import EncodedRequest


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
