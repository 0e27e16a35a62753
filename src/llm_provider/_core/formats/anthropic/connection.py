"""The connection to Anthropic and to servers with its format, through the anthropic SDK.

It is alone because `connect` imports the SDK, which a cache hit must not load.
"""

import inspect
from typing import Any

from ... import doors
from ...settings import MAX_RESPONSE_BYTES
from ..transport.connection import SDKConnection, post_sdk
from .decode import OPERATION


def connect(transport: str, most_bytes: int = MAX_RESPONSE_BYTES) -> SDKConnection:
    import anthropic

    sdk = post_sdk(
        anthropic,
        "AsyncAnthropic",
        path=lambda operation: f"/v1/{operation}" if operation.startswith(OPERATION) else f"/{operation}",
        client_options=without_spans(anthropic.AsyncAnthropic),
        stream_url=doors.cloud_anthropic.stream_url,
        # A stream reports its usage without being asked. The address of Bedrock's says that it is one.
        stream_fields=lambda outgoing: (
            {} if outgoing.encoded.operation.endswith("/invoke") else {"stream": True}
        ),
    )
    return SDKConnection(sdk, transport, most_bytes)


def without_spans(client_class: type) -> dict[str, Any]:
    """Options without the SDK's spans: they cost a tenth of a call's CPU. SDKs before 1 have none."""
    parameters = inspect.signature(client_class).parameters
    return {"open_telemetry": False} if "open_telemetry" in parameters else {}
