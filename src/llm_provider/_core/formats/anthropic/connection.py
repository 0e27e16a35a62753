"""The connection to Anthropic and to servers with its format, through the anthropic SDK 2.

It is alone because `connect` imports the SDK, which a cache hit must not load.
"""

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
        # The SDK's spans cost a tenth of a call's CPU, and the user has not asked for them.
        client_options={"open_telemetry": False},
        stream_url=doors.cloud_anthropic.stream_url,
        # A stream reports its usage without being asked. The address of Bedrock's says that it is one.
        stream_fields=lambda outgoing: (
            {} if outgoing.encoded.operation.endswith("/invoke") else {"stream": True}
        ),
    )
    return SDKConnection(sdk, transport, most_bytes)
