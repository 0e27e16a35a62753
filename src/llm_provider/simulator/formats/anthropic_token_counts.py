"""The wire format of Anthropic's ``messages/count_tokens``."""

from __future__ import annotations

from typing import Any

from . import anthropic
from .anthropic import refuse_length, refuse_rate, reject, write_error, write_error_frame, write_limit_headers
from .wire_format import Completion, Problem, Prompt, Request
from .wire_format import stream_nothing as stream

__all__ = [
    "read", "refuse_length", "refuse_rate", "reject", "reply", "stream", "write_error", "write_error_frame",
    "write_limit_headers",
]  # fmt: skip

# The fields of ``MessageCountTokensParams`` in anthropic 2.
_FIELDS = frozenset({
    "cache_control", "messages", "model", "output_config", "speed", "system", "thinking", "tool_choice",
    "tools",
})  # fmt: skip


def read(request: Request) -> Prompt | Problem:
    """Read a request, which has the fields of a messages request that concern the input."""
    surplus = sorted(set(request.body) - _FIELDS)
    if surplus:
        return Problem(f"{surplus[0]}: Extra inputs are not permitted")
    prompt = anthropic.read(request._replace(body={**request.body, "max_tokens": 1}))
    if isinstance(prompt, Prompt):
        prompt.samples, prompt.billed = 0, False
    return prompt


def reply(_prompt: Prompt, completion: Completion) -> dict[str, Any]:
    """A ``MessageTokensCount``."""
    return {"input_tokens": completion.usage.input_tokens}
