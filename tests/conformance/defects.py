"""The cells of the matrix that are known to be wrong, each with the reason. A test that passes here fails."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

_LOOKS_FINISHED = "a call that is not a function's looks like a finished answer"
_CUT = "a whole answer without a finish reason is taken for a cut one"
_THROWN_AWAY = "a whole answer that ends with this word is thrown away"

ANSWERS: dict[tuple[str, str], str] = {
    ("chat", "ends with None"): _CUT,
    ("chat", "ends with ''"): _CUT,
    ("responses", "shell_call"): _LOOKS_FINISHED,
    ("responses", "ends with completed"): "a whole answer without output is taken for a malformed one",
    ("responses", "ends with incomplete"): _THROWN_AWAY,
    ("responses", "ends with incomplete steered"): _THROWN_AWAY,
    ("gemini", "ends with OTHER"): _THROWN_AWAY,
    ("gemini", "ends with MALFORMED_FUNCTION_CALL"): _THROWN_AWAY,
    ("gemini", "ends with NO_IMAGE"): _THROWN_AWAY,
    ("gemini", "ends with UNEXPECTED_TOOL_CALL"): _THROWN_AWAY,
    ("gemini", "ends with MISSING_THOUGHT_SIGNATURE"): _THROWN_AWAY,
    ("gemini", "ends with MALFORMED_RESPONSE"): _THROWN_AWAY,
}
"""(format, cell) → why its replies are not decoded to the answer that they hold."""

RETURNS: dict[tuple[str, str], str] = {
    ("chat", "annotations"): "OpenAI's types have no annotations in a request",
    ("chat", "audio"): "a recording goes back to its provider by its id, and not to the other formats",
    ("chat", "function_call"): "OpenAI's old form of a call does not go to the other formats",
    ("chat", "tool_calls: custom"): "a call of a custom tool does not go to the other formats",
    ("responses", "custom_tool_call"): "a call of a custom tool does not go to the other formats",
}
"""(format, cell) → why its answers cannot be sent to every format."""


REQUESTS: dict[tuple[str, str], str] = {
    (
        "chat",
        "a result with an image",
    ): "OpenAI's tool messages take text only, and the image is sent as it is",
}
"""(format, row of docs/features.md) → why a request does not fit the SDK's types."""


def marked(cells: Iterable[tuple[str, str, Any]], known: dict[tuple[str, str], str]) -> list[Any]:
    """The cells as parameters of a test; those that are known to be wrong must fail."""
    return [
        pytest.param(
            *cell,
            id=f"{cell[0]}: {cell[1]}",
            marks=pytest.mark.xfail(reason=known[cell[:2]], raises=AssertionError)
            if cell[:2] in known
            else (),
        )
        for cell in cells
    ]
