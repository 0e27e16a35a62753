"""Anthropic's Messages at Vertex AI and classic Bedrock, whose addresses hold the model. Pure.

The body has the version of the format in the place of the model. Facts from the platform clients of anthropic
2.12 and from the guides of Google and AWS.
"""

import base64
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from functools import partial
from typing import Any
from urllib.parse import quote

from ..._core.errors import APIResponseValidationError
from ..._core.formats.protocol import EncodedRequest
from ..._core.requests.routing import Target
from ..._core.runtime.imports import import_optional, install_command
from ..._core.runtime.json_pieces import JSONLimitError, loads, read_large, takes_long
from ..._core.runtime.threads import result_in_thread
from .addresses import Cloud

_STREAMED = {":rawPredict": ":streamRawPredict", "/invoke": "/invoke-with-response-stream"}
"""End of an address → the end of the one that streams."""


def move_model(encoded: EncodedRequest, target: Target, cloud: Cloud) -> EncodedRequest:
    """A request with the model in its address, and the version of the format in its body."""
    payload, headers = dict(encoded.payload), dict(encoded.headers)
    del payload["model"]
    headers.pop("anthropic-version", None)
    if cloud.identity == "aws" and "anthropic-beta" in headers:
        # Bedrock reads no header of Anthropic's.
        payload["anthropic_beta"] = [name.strip() for name in headers.pop("anthropic-beta").split(",")]
    encoded.payload = {"anthropic_version": cloud.version, **payload}
    encoded.operation, encoded.headers = cloud.operation.format(model=quote(target.model, safe=":@")), headers
    return encoded


def counting(encoded: EncodedRequest, target: Target) -> EncodedRequest:
    """The request to Vertex AI that counts the tokens of another one. Its body names the model."""
    start = encoded.operation.rpartition("/")[0]
    return EncodedRequest(f"{start}/count-tokens:rawPredict", {"model": target.model}, encoded.headers)


def stream_url(url: str) -> str:
    """The address that streams what another one answers whole; most addresses do both.

    >>> stream_url("https://x/models/claude-opus-5-5:rawPredict")
    'https://x/models/claude-opus-5-5:streamRawPredict'
    """
    end = next((end for end in _STREAMED if url.endswith(end)), None)
    return url if end is None else f"{url.removesuffix(end)}{_STREAMED[end]}"


AWS_FRAMES = "application/vnd.amazon.eventstream"
"""The type of a body in these frames."""


async def read_frames(chunks: AsyncIterator[bytes]) -> AsyncGenerator[list[Any], None]:
    """The events of a stream, in batches that arrived together. An exception becomes an "error" event."""
    library = import_optional("botocore.eventstream", install_command("bedrock"))
    buffer = library.EventStreamBuffer()
    async for chunk in chunks:
        buffer.add_data(chunk)
        try:
            frames = [message.to_response_dict() for message in buffer]
            read: Callable[[], list[Any]] = partial(list, map(_event, frames))
            if any(takes_long(frame["body"]) for frame in frames):
                batch = await result_in_thread(partial(read_large, read), "llm_provider-events")
            else:
                batch = read()
        except JSONLimitError as error:
            raise APIResponseValidationError(f"a frame cannot be read: {error}", retryable=False) from None
        except (library.ParserError, ValueError, KeyError) as error:
            problem = f"a frame of the stream is damaged: {type(error).__name__}"
            raise APIResponseValidationError(problem) from None
        if batch:
            yield batch


def _event(frame: dict[str, Any]) -> Any:
    body, headers = loads(frame["body"] or b"{}"), frame["headers"]
    if frame["status_code"] == 200:
        return loads(base64.b64decode(body["bytes"]))
    kind = headers.get(":exception-type") or headers.get(":error-code")
    message = body.get("message") or headers.get(":error-message")
    return {"type": "error", "error": {"type": kind, "message": message}}
