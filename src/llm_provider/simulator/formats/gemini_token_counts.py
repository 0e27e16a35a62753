"""The wire format of Gemini's ``countTokens``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import gemini
from .gemini import context_length, error, error_frame, limit_headers, rate_limited, rejection
from .wire_format import Completion, Frame, Problem, Prompt, Request

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "context_length",
    "error",
    "error_frame",
    "frames",
    "limit_headers",
    "rate_limited",
    "read",
    "rejection",
    "reply",
]


def read(request: Request) -> Prompt | Problem:
    """Read a request with ``contents``, or with a whole ``generateContentRequest``."""
    whole = request.body.get("generateContentRequest")
    if whole is not None and "contents" in request.body:
        message = "Invalid value: only one of contents and generateContentRequest can be set"
        return Problem(status=400, message=message)
    if whole is not None and not whole.get("model", "").endswith(_model(request)):
        return Problem(status=400, message="* CountTokensRequest.generateContentRequest: model is not valid")
    prompt = gemini.read(request if whole is None else request._replace(body=whole))
    if isinstance(prompt, Prompt):
        prompt.samples, prompt.billed = 0, False
    return prompt


def _model(request: Request) -> str:
    return request.path.rpartition("/models/")[2].partition(":")[0]


def reply(_prompt: Prompt, completion: Completion) -> dict[str, Any]:
    """A ``CountTokensResponse``."""
    tokens = completion.usage.input_tokens
    return {"totalTokens": tokens, "promptTokensDetails": [{"modality": "TEXT", "tokenCount": tokens}]}


def frames(_prompt: Prompt, _completion: Completion) -> Iterator[Frame]:
    """No frames, because counts are not streamed."""
    return iter(())
