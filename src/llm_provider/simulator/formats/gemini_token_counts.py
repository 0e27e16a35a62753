"""The wire format of Gemini's ``countTokens``."""

from __future__ import annotations

from typing import Any

from . import gemini
from .gemini import refuse_length, refuse_rate, reject, write_error, write_error_frame, write_limit_headers
from .wire_format import Completion, Problem, Prompt, Request
from .wire_format import stream_nothing as stream

__all__ = [
    "read", "refuse_length", "refuse_rate", "reject", "reply", "stream", "write_error", "write_error_frame",
    "write_limit_headers",
]  # fmt: skip


def read(request: Request) -> Prompt | Problem:
    """Read a request with ``contents``, or with a whole ``generateContentRequest``."""
    whole = request.body.get("generateContentRequest")
    if whole is not None and "contents" in request.body:
        message = "Invalid value: only one of contents and generateContentRequest can be set"
        return Problem(message)
    if whole is not None and not whole.get("model", "").endswith(_read_model(request)):
        return Problem("* CountTokensRequest.generateContentRequest: model is not valid")
    prompt = gemini.read(request if whole is None else request._replace(body=whole))
    if isinstance(prompt, Prompt):
        prompt.samples, prompt.billed = 0, False
    return prompt


def _read_model(request: Request) -> str:
    return request.path.rpartition("/models/")[2].partition(":")[0]


def reply(_prompt: Prompt, completion: Completion) -> dict[str, Any]:
    """A ``CountTokensResponse``."""
    tokens = completion.usage.input_tokens
    return {"totalTokens": tokens, "promptTokensDetails": [{"modality": "TEXT", "tokenCount": tokens}]}
