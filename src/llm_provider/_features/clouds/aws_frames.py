"""The event streams of AWS: Bedrock sends each event of Claude in a frame. botocore reads the frames."""

import base64
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from functools import partial
from typing import Any

from ..._core.errors import APIResponseValidationError
from ..._core.runtime.imports import import_optional, install_command
from ..._core.runtime.json_pieces import JSONLimitError, loads, read_large, takes_long
from ..._core.runtime.threads import result_in_thread

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
