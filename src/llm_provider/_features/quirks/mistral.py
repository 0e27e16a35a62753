"""Mistral: the content of a message is a list of parts, which a stream cuts into pieces."""

import contextlib
from collections.abc import Sequence
from typing import Any


def join_content(pieces: Sequence[Any]) -> Any:
    """The content of a message: a text, or parts as of Mistral's models, whose texts become parts too."""
    with contextlib.suppress(TypeError):
        return "".join(pieces) or None
    parts: list[Any] = []
    for piece in pieces:
        parts += piece if isinstance(piece, list) else [{"type": "text", "text": piece}]
    return _join_parts(parts)


def _join_parts(parts: Sequence[Any]) -> list[Any]:
    """Parts as a whole answer has them: pieces of one text, or of one thought, are one part."""
    runs: list[list[Any]] = []
    for entry in parts:
        if runs and _continues(runs[-1][-1], entry):
            runs[-1].append(entry)
        else:
            runs.append([entry])
    result = []
    for run in runs:
        merged = {name: value for entry in run for name, value in entry.items()} if len(run) > 1 else run[0]
        kind = merged.get("type") if isinstance(merged, dict) else None
        if kind == "text" and isinstance(merged.get("text"), str):
            merged = {**merged, "text": "".join(entry["text"] for entry in run)}
            if merged == {"type": "text", "text": ""}:
                continue
        elif kind == "thinking" and isinstance(merged.get("thinking"), list):
            merged = {
                **merged,
                "thinking": _join_parts([thought for entry in run for thought in entry["thinking"]]),
            }
        result.append(merged)
    return result


def _continues(last: Any, entry: Any) -> bool:
    """Whether a part is the next piece of the one before it. A signature ends a thought."""
    kind = entry.get("type") if isinstance(entry, dict) else None
    if kind not in ("text", "thinking") or not isinstance(last, dict) or last.get("type") != kind:
        return False
    form = str if kind == "text" else list
    both = isinstance(last.get(kind), form) and isinstance(entry.get(kind), form)
    return both and not last.get("signature") and not last.get("closed")
