"""AWS's event streams, ``application/vnd.amazon.eventstream``, in which Bedrock sends the events of Claude.

A frame has its length, headers, a payload and two checksums (CRC-32), as AWS's specification says.
"""

from __future__ import annotations

import base64
import re
import struct
import zlib
from typing import TYPE_CHECKING

import orjson

from .wire_format import Frame

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["FRAMES_TYPE", "frame_error", "frame_events", "is_framed", "write_frame"]

FRAMES_TYPE = (b"content-type", b"application/vnd.amazon.eventstream")

_DATA = re.compile(rb"^data: (.*)$", re.MULTILINE)


def is_framed(path: str) -> bool:
    """Whether a path streams in frames."""
    return path.endswith("/invoke-with-response-stream")


def frame_events(frames: Iterable[Frame]) -> Iterator[Frame]:
    """The server-sent events of a stream, each in a frame."""
    for frame in frames:
        for event in _DATA.findall(frame.data):
            payload = orjson.dumps({"bytes": base64.b64encode(event).decode(), "p": "abc"})
            yield Frame(
                write_frame({":event-type": "chunk", ":message-type": "event"}, payload), frame.tokens
            )


def frame_error(event: bytes) -> bytes:
    """A server-sent event that reports an error, as an exception of Bedrock's."""
    error: dict[str, str] = next((orjson.loads(data)["error"] for data in _DATA.findall(event)), {})
    headers = {":exception-type": "modelStreamErrorException", ":message-type": "exception"}
    return write_frame(headers, orjson.dumps({"message": error.get("message", "")}))


def write_frame(headers: dict[str, str], payload: bytes) -> bytes:
    """A frame whose headers are texts (type 7)."""
    written = b"".join(
        struct.pack("!B", len(name)) + name.encode() + struct.pack("!BH", 7, len(value)) + value.encode()
        for name, value in {**headers, ":content-type": "application/json"}.items()
    )
    start = struct.pack("!II", 16 + len(written) + len(payload), len(written))
    message = start + struct.pack("!I", zlib.crc32(start)) + written + payload
    return message + struct.pack("!I", zlib.crc32(message))
