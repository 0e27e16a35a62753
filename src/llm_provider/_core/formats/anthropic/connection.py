"""The connection to Anthropic and to servers with its format, through the anthropic SDK 2."""

from ... import doors
from ...settings import MAX_RESPONSE_BYTES
from ..transport.sdk_connection import PostConnection
from .decode import OPERATION


def connect(transport: str, most_bytes: int = MAX_RESPONSE_BYTES) -> PostConnection:
    import anthropic

    return PostConnection(
        anthropic,
        transport,
        most_bytes,
        client_class="AsyncAnthropic",
        path=lambda operation: f"/v1/{operation}" if operation.startswith(OPERATION) else f"/{operation}",
        stream_url=doors.cloud_anthropic.stream_url,
        # A stream reports its usage without being asked. The address of Bedrock's says that it is one.
        stream_fields=lambda outgoing: (
            {} if outgoing.encoded.operation.endswith("/invoke") else {"stream": True}
        ),
        # The SDK's spans cost a tenth of a call's CPU, and the user has not asked for them.
        client_options={"open_telemetry": False},
        post_options={},
    )
