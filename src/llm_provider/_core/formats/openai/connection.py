"""The connection to OpenAI and to every compatible host, through the openai SDK (2 and 3).

It is alone because `connect` imports the SDK, which a cache hit must not load.
"""

from collections.abc import Mapping
from typing import Any

from ...settings import MAX_RESPONSE_BYTES
from ..openai_chat.encode import OPERATION
from ..protocol import Outgoing
from ..transport.connection import SDKConnection, post_sdk


def connect(transport: str, most_bytes: int = MAX_RESPONSE_BYTES) -> SDKConnection:
    import openai

    def stream_fields(outgoing: Outgoing) -> Mapping[str, Any]:
        if outgoing.encoded.operation != OPERATION or not outgoing.target.route.stream_usage:
            return {"stream": True}
        given = outgoing.encoded.payload.get("stream_options", {})
        return {"stream": True, "stream_options": {"include_usage": True, **given}}

    sdk = post_sdk(openai, "AsyncOpenAI", path=lambda operation: f"/{operation}", stream_fields=stream_fields)
    return SDKConnection(sdk, transport, most_bytes)
