"""The wire format of Gemini's `countTokens`. Pure.

Facts from the Gemini API reference: with `generateContentRequest` the whole request is counted, with its
system instruction and its tools. The SDK's own method sends the contents alone.
"""

from __future__ import annotations

from typing import Any

from ..._requests.routing import Target
from ..adapter import EncodedRequest, count_of
from .adapter import operation, resource


def encode(encoded: EncodedRequest, target: Target) -> EncodedRequest:
    """The request that counts the input of a request for an answer."""
    whole = {"model": resource(target.model), **encoded.payload}
    return EncodedRequest(
        operation(target, "countTokens"), {"generateContentRequest": whole}, encoded.headers
    )


def decode(reply: Any) -> int:
    """The number of input tokens.

    Raises:
        APIResponseValidationError: the reply has none.
    """
    return count_of(reply, "totalTokens")
