"""A request → the arguments of `litellm.acompletion`, for providers without a route of their own. Pure.

litellm takes and returns Chat Completions. Four of its habits cannot be turned off: it follows redirects; it
sends a request a second time when a connection breaks before the answer; it adds "stop" to an answer that
came without a finish reason (`LiteLLMConnection.stream` detects this); and it reports refusals and filtered
answers alike as "content_filter".
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..._core import doors
from ..._core.errors import RequestError
from ..._core.formats.anthropic.decode import tier_variant
from ..._core.formats.openai_chat import encode as chat
from ..._core.formats.openai_chat.decode import facts, usage, variant
from ..._core.formats.protocol import Answer, EncodedRequest
from ..._core.formats.shared.conversations import own_content
from ..._core.formats.shared.payload import Accepts
from ..._core.formats.shared.replies import count, part, with_tools
from ..._core.formats.shared.replies import keep_whole as split
from ..._core.requests.embed_request import EmbedRequest
from ..._core.requests.request import Request
from ..._core.requests.routing import Target
from ..._core.types.messages import Message
from ..foreign.tools import with_named_tools
from .errors import map_error
from .stream import assembler

__all__ = ["assembler", "decode", "encode", "facts", "map_error", "split", "usage", "variant"]

# Arguments of `acompletion` that are not part of the payload, and the parameter to use for each. An API key
# among them would become part of the cache key, and litellm's retries would multiply with this library's.
_NOT_IN_EXTRA_BODY = {
    "api_key": "api_key=", "api_base": "base_url=", "base_url": "base_url=", "timeout": "timeout=",
    "request_timeout": "timeout=", "max_retries": "max_retries=", "num_retries": "max_retries=",
    "extra_headers": "extra_headers=", "headers": "extra_headers=", "stream": "stream()",
}  # fmt: skip


def encode(request: Request, target: Target) -> EncodedRequest:
    """Build the keyword arguments. litellm decides which parameters the provider accepts."""
    check_extra_body(request)
    if request.tools:
        request = with_named_tools(request, PROVIDER)
    if re.search("claude|anthropic", target.model):
        request = replace(request, messages=tuple(map(_with_thinking, request.messages)))
    encoded = chat.encode(request, target, accepts=ACCEPTS)
    if target.model.startswith("openrouter/"):
        doors.routers.warn_if_unpinned(target, encoded.payload)
    return encoded


# litellm's `metadata` goes to its loggers and not to the provider, and it refuses `allowed_tools`. It has no
# other endpoint.
_NOT_ACCEPTED = {"allowed_tools", "endpoint", "metadata"}

ACCEPTS: Accepts = {
    **{name: chat.ACCEPTS[name] for name in chat.ACCEPTS.keys() - _NOT_ACCEPTED},
    "safety_settings": "safety_settings",
}


def check_extra_body(request: Request | EmbedRequest) -> None:
    """Refuse fields that are arguments of the call, because litellm reads both from the same place."""
    for name in request.extra_body or ():
        if name in _NOT_IN_EXTRA_BODY:
            raise RequestError(
                f"extra_body cannot set {name!r}: use {_NOT_IN_EXTRA_BODY[name]}",
                provider=PROVIDER,
                model=request.model,
            )


def _with_thinking(message: Message) -> Message:
    """A message with its signed thinking in the field that litellm reads for Anthropic's models."""
    kept = own_content(message, PROVIDER)
    thinking = kept.get("thinking_blocks") if isinstance(kept, Mapping) else None
    if not thinking:
        return message
    others = {name: value for name, value in message.items() if name != "provider_specific_fields"}
    return {**others, "thinking_blocks": thinking}


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
