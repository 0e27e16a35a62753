"""Anthropic's messages at Vertex AI and at Bedrock: the model is in the path, and the version in the body.

Bedrock streams in frames of its own, ``application/vnd.amazon.eventstream``: each has its length, headers, a
payload and two checksums (CRC-32), as AWS's specification of event streams says.
"""

from __future__ import annotations

import base64
import re
import struct
import zlib
from typing import TYPE_CHECKING
from urllib.parse import unquote

import orjson

from . import anthropic
from .anthropic import refuse_length, refuse_rate, reject, reply, write_error
from .wire_format import Completion, Frame, Headers, LimitState, Problem, Prompt, Request

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "read", "refuse_length", "refuse_rate", "reject", "reply", "stream", "write_error", "write_error_frame",
    "write_limit_headers",
]  # fmt: skip

VERSIONS = {"vertex_ai": "vertex-2023-10-16", "bedrock": "bedrock-2023-05-31"}
_DATA = re.compile(rb"^data: (.*)$", re.MULTILINE)
_MODEL = re.compile(r"/model/([^/]+)/invoke|/models/([^/:]+):")


def read(request: Request) -> Prompt | Problem:
    """Read a request, which is refused if its body has what only the direct API takes."""
    body = dict(request.body)
    for name in ("model", *(["stream"] if _is_bedrock(request) else ())):
        if name in body:
            return Problem(f"{name}: Extra inputs are not permitted")
    version = body.pop("anthropic_version", None)
    if version != VERSIONS["bedrock" if _is_bedrock(request) else "vertex_ai"]:
        return Problem(f"anthropic_version: {version!r} is not valid")
    match = _MODEL.search(request.path)
    assert match is not None, "the table of operations has the paths"
    model = re.sub(r"^([a-z-]+\.)?anthropic\.|-v\d+(:\d+)?$", "", unquote(match[1] or match[2]))
    if _is_bedrock(request):
        body["stream"] = request.path.endswith("-stream")
    return anthropic.read(request._replace(body={**body, "model": model}))


def stream(prompt: Prompt, completion: Completion) -> Iterator[Frame]:
    """The events of the direct API, at Bedrock each in a frame."""
    for frame in anthropic.stream(prompt, completion):
        if not _is_bedrock(prompt.request):
            yield frame
            continue
        for event in _DATA.findall(frame.data):
            payload = orjson.dumps({"bytes": base64.b64encode(event).decode(), "p": "abc"})
            yield Frame(
                write_frame({":event-type": "chunk", ":message-type": "event"}, payload), frame.tokens
            )


def write_error_frame(problem: Problem, request_identifier: str) -> bytes:
    """An error inside a stream, as the direct API writes it."""
    return anthropic.write_error_frame(problem, request_identifier)


def write_limit_headers(_state: LimitState) -> Headers:
    """Clouds send no limits with Claude's answers."""
    return []


def write_frame(headers: dict[str, str], payload: bytes) -> bytes:
    """A frame of an event stream. All headers are text (type 7)."""
    written = b"".join(
        struct.pack("!B", len(name)) + name.encode() + struct.pack("!BH", 7, len(value)) + value.encode()
        for name, value in {**headers, ":content-type": "application/json"}.items()
    )
    start = struct.pack("!II", 16 + len(written) + len(payload), len(written))
    message = start + struct.pack("!I", zlib.crc32(start)) + written + payload
    return message + struct.pack("!I", zlib.crc32(message))


def _is_bedrock(request: Request) -> bool:
    return "/model/" in request.path
