"""The wire format of Anthropic's ``messages/count_tokens``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import anthropic
from .anthropic import context_length, error, error_frame, limit_headers, rate_limited, rejection
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

# The fields of ``MessageCountTokensParams`` in anthropic 2.
_FIELDS = frozenset({
    "cache_control", "messages", "model", "output_config", "speed", "system", "thinking", "tool_choice",
    "tools",
})  # fmt: skip


def read(request: Request) -> Prompt | Problem:
    """Read a request, which has the fields of a messages request that concern the input."""
    surplus = sorted(set(request.body) - _FIELDS)
    if surplus:
        return Problem(status=400, message=f"{surplus[0]}: Extra inputs are not permitted")
    prompt = anthropic.read(request._replace(body={**request.body, "max_tokens": 1}))
    if isinstance(prompt, Prompt):
        prompt.samples, prompt.billed = 0, False
    return prompt


def reply(_prompt: Prompt, completion: Completion) -> dict[str, Any]:
    """A ``MessageTokensCount``."""
    return {"input_tokens": completion.usage.input_tokens}


def frames(_prompt: Prompt, _completion: Completion) -> Iterator[Frame]:
    """No frames, because counts are not streamed."""
    return iter(())
