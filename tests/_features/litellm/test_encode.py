"""What replies of litellm have of other formats: signed thinking, service levels and counts."""

from typing import Any

import pytest

from llm_provider._core.formats.protocol import EncodedRequest
from llm_provider._features.litellm import encode as adapter


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


@pytest.mark.parametrize(
    ("model", "counts", "tier", "unpriced"),
    [
        ("claude-opus-5-5", {"speed": "fast", "service_tier": "standard"}, "fast", 0),
        ("claude-opus-5-5", {"iterations": [{"type": "compaction"}, {"type": "advisor_message"}]}, None, 1),
        ("gemini-2.5-flash", {"prompt_tokens_details": {"cached_tokens": 2, "audio_tokens": 1}}, None, 1),
        ("gemini-2.5-flash", {"prompt_tokens_details": {"cached_tokens": 2, "audio_tokens": None}}, None, 0),
        ("gpt-6.1-sol", {"prompt_tokens_details": {"cached_tokens": 2, "audio_tokens": 0}}, None, 0),
    ],
)
def test_what_a_usage_tells_of_its_price(model: str, counts: Any, tier: str | None, unpriced: int) -> None:
    usage = {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11, **counts}
    message = {"role": "assistant", "content": "Hi"}
    answer = adapter.decode({"model": model, "choices": [{"message": message}], "usage": usage})
    assert answer.usage is not None
    assert (answer.service_tier, answer.usage.unpriced_tools) == (tier, unpriced)
