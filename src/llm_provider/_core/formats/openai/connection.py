"""The connection to OpenAI and to every compatible host, through the openai SDK (2 and 3)."""

from collections.abc import Mapping
from typing import Any

from ...settings import MAX_RESPONSE_BYTES
from ..openai_chat.encode import OPERATION
from ..protocol import Outgoing
from ..transport.sdk_connection import PostConnection


def _stream_fields(outgoing: Outgoing) -> Mapping[str, Any]:
    if outgoing.encoded.operation == OPERATION and outgoing.target.route.stream_usage:
        given = outgoing.encoded.payload.get("stream_options", {})
        return {"stream": True, "stream_options": {"include_usage": True, **given}}
    return {"stream": True}


def connect(transport: str, most_bytes: int = MAX_RESPONSE_BYTES) -> PostConnection:
    import openai

    return PostConnection(
        openai,
        transport,
        most_bytes,
        client_class="AsyncOpenAI",
        path=lambda operation: f"/{operation}",
        stream_fields=_stream_fields,
        client_options={},
        # The default, which the SDK copies deeply for each request where it is missing.
        post_options={"security": {"bearer_auth": True}},
    )
