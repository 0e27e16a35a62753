"""A request → the arguments of `litellm.acompletion`, for providers without a route of their own. Pure.

litellm takes and returns Chat Completions. Four of its habits cannot be turned off: it follows redirects; it
sends a request a second time when a connection breaks before the answer; it adds "stop" to an answer that
came without a finish reason (`LiteLLMConnection.stream` detects this); and it reports refusals and filtered
answers alike as "content_filter".
"""

import re
from collections.abc import Mapping
from dataclasses import replace

from ..._core import doors
from ..._core.errors import RequestError
from ..._core.formats.openai_chat import encode as chat
from ..._core.formats.openai_chat.decode import usage
from ..._core.formats.openai_chat.usage import facts, variant
from ..._core.formats.protocol import EncodedRequest
from ..._core.formats.shared.conversations import own_content
from ..._core.formats.shared.payload import Accepts
from ..._core.formats.shared.replies import keep_whole as split
from ..._core.requests.request import EmbedRequest, Request
from ..._core.requests.routing import Target
from ..._core.types.messages import Message
from ..foreign.tools import with_named_tools
from .decode import PROVIDER, decode
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
    doors.any_server.warn_if_unpinned(target, encoded.payload)
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
