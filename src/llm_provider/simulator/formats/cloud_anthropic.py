"""Anthropic's messages at Vertex AI and at Bedrock: the model is in the path, and the version in the body."""

from __future__ import annotations

import re
from urllib.parse import unquote

from . import anthropic
from .anthropic import refuse_length, refuse_rate, reject, reply, stream, write_error, write_error_frame
from .wire_format import Headers, LimitState, Problem, Prompt, Request

__all__ = [
    "read", "refuse_length", "refuse_rate", "reject", "reply", "stream", "write_error", "write_error_frame",
    "write_limit_headers",
]  # fmt: skip

VERSIONS = {"vertex_ai": "vertex-2023-10-16", "bedrock": "bedrock-2023-05-31"}
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


def write_limit_headers(_state: LimitState) -> Headers:
    """Clouds send no limits with Claude's answers."""
    return []


def _is_bedrock(request: Request) -> bool:
    return "/model/" in request.path
