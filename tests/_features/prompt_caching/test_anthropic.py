"""Breakpoints in Anthropic's format."""

from typing import Any

import anthropic
import pydantic

from llm_provider._features.prompt_caching import anthropic as prompt_cache
from llm_provider._features.prompt_caching.settings import PrefixMark

from .test_settings import LONG, encoded

MODEL = "claude-sonnet-5-5"
CONTROL = {"type": "ephemeral"}


def sent(messages: Any, **parameters: Any) -> dict[str, Any]:
    request = encoded(MODEL, messages, **parameters)
    payload = request.add_labels(request.payload)
    pydantic.TypeAdapter(
        anthropic.types.message_create_params.MessageCreateParamsNonStreaming
    ).validate_python(payload)
    return payload


def test_a_conversation_is_cached_up_to_its_last_message() -> None:
    turns = [{"role": "user", "content": LONG}, {"role": "assistant", "content": "Yes."}]
    payload = sent([*turns, {"role": "user", "content": "And now?"}])
    assert payload["messages"][1]["content"] == [{"type": "text", "text": "Yes.", "cache_control": CONTROL}]


def test_breakpoints_of_the_users_own_are_left_alone() -> None:
    own = {"type": "text", "text": LONG, "cache_control": {"type": "ephemeral", "ttl": "1h"}}
    payload = sent([{"role": "user", "content": [own, {"type": "text", "text": "Hi"}]}], system=LONG)
    assert (payload["system"], payload["messages"][0]["content"][0]) == (LONG, own)
    assert "cache_control" in sent("Hi", system=LONG, extra_body={"cache_control": CONTROL})


def test_a_prefix_that_nobody_shares_is_not_written() -> None:
    request = encoded(MODEL, "Hi", system=LONG)
    request.prefix = PrefixMark(prompt_cache, 0, of_batch=True)
    assert request.add_labels(request.payload) == request.payload
