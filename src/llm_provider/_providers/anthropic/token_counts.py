"""The wire format of Anthropic's `messages/count_tokens`. Pure.

Facts from the types of anthropic 2 (`MessageCountTokensParams`, `MessageTokensCount`): the request is one for
an answer without the fields that concern the answer only.
"""

from __future__ import annotations

from typing import Any

from ..._requests.routing import Target
from ..adapter import EncodedRequest, count_of

_COUNTED = (
    "cache_control",
    "messages",
    "model",
    "output_config",
    "system",
    "thinking",
    "tool_choice",
    "tools",
)


def encode(encoded: EncodedRequest, target: Target) -> EncodedRequest:
    """The request that counts the input of a request for an answer."""
    payload = {name: encoded.payload[name] for name in _COUNTED if name in encoded.payload}
    return EncodedRequest(f"{encoded.operation}/count_tokens", payload, encoded.headers)


def decode(reply: Any) -> int:
    """The number of input tokens.

    Raises:
        APIResponseValidationError: the reply has none.
    """
    return count_of(reply, "input_tokens")
