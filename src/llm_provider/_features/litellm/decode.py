"""Replies of litellm, which are chat completions. Pure."""

from typing import Any

from ..._core import doors
from ..._core.formats.anthropic.decode import tier_variant
from ..._core.formats.protocol import Answer
from ..._core.formats.shared.replies import count, part, with_tools

PROVIDER = "litellm"


def decode(reply: Any) -> Answer:
    answer, usage = doors.any_server.decode(reply), part(reply, "usage")
    # The usage of Claude names it, and fast mode beside it.
    named = tier_variant(usage)
    answer.service_tier = named if named == "fast" else answer.service_tier or named
    details = part(usage, "prompt_tokens_details")
    has_audio = "gemini" in str(answer.model) and details.get("audio_tokens") is not None
    if answer.usage is not None and has_audio and count(details, "cached_tokens"):
        # litellm leaves the audio that was read from the cache out of its count of audio.
        answer.usage = with_tools(answer.usage, 0, 1)
    for choice, entry in zip(answer.choices, reply["choices"], strict=True):
        thinking = part(entry, "message").get("thinking_blocks")
        if isinstance(thinking, list) and thinking and isinstance(choice.message, dict):
            choice.message.pop("thinking_blocks", None)
            kept = {"thinking_blocks": thinking}
            choice.message["provider_specific_fields"] = {"provider": PROVIDER, "content": kept}
    return answer
