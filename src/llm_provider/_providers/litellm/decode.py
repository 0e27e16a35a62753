"""Replies of litellm, which are chat completions. Pure."""

from typing import Any

from ..openai_chat import decode as chat
from ..protocol import Answer
from ..shared.replies import part
from .encode import PROVIDER


def decode(reply: Any) -> Answer:
    answer = chat.decode(reply)
    for choice, entry in zip(answer.choices, reply["choices"], strict=True):
        thinking = part(entry, "message").get("thinking_blocks")
        if isinstance(thinking, list) and thinking and isinstance(choice.message, dict):
            choice.message.pop("thinking_blocks", None)
            kept = {"thinking_blocks": thinking}
            choice.message["provider_specific_fields"] = {"provider": PROVIDER, "content": kept}
    return answer
