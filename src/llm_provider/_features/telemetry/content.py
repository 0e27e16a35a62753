"""Prompts and answers as JSON in the form of the GenAI conventions, without the bytes of media."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import orjson

from ..._core.json_values import json_value

if TYPE_CHECKING:
    from ..._core.types.messages import Message
    from ..._core.types.response import Choice


def prompt_json(request: object) -> str | None:
    """The messages or the texts of a request; None if it has neither."""
    messages = getattr(request, "messages", None)
    if messages is not None:
        return _encode([_message(message) for message in messages])
    inputs = getattr(request, "inputs", None)
    if inputs is None:
        return None
    return _encode([{"role": "user", "parts": [{"type": "text", "content": str(text)}]} for text in inputs])


def answer_json(outcome: object) -> str | None:
    """The samples of an answer; None for an error, for vectors and for counts."""
    choices = getattr(outcome, "choices", None) if not isinstance(outcome, BaseException) else None
    if choices is None:
        return None
    # The conventions' word is in the singular.
    reasons = [choice.finish_reason.replace("tool_calls", "tool_call") for choice in choices]
    return _encode([
        {"role": "assistant", "parts": list(_answer_parts(choice)), "finish_reason": reason}
        for choice, reason in zip(choices, reasons, strict=True)
    ])  # fmt: skip


def result_text(content: object) -> str:
    """What a tool returned, as the model is told: a text as it is, parts as JSON."""
    return content if isinstance(content, str) else _encode(_text(content))


def _answer_parts(choice: Choice) -> Iterable[dict[str, object]]:
    if choice.reasoning:
        yield {"type": "reasoning", "content": choice.reasoning}
    if choice.text:
        yield {"type": "text", "content": choice.text}
    for call in choice.tool_calls:
        yield {"type": "tool_call", "id": call.id, "name": call.name, "arguments": call.arguments}


def _message(message: Message) -> dict[str, object]:
    role, content = message.get("role"), message.get("content")
    if role == "tool":
        part = {"type": "tool_call_response", "id": message.get("tool_call_id"), "response": _text(content)}
        return {"role": role, "parts": [part]}
    parts: list[dict[str, object]] = (
        [{"type": "text", "content": content}] if isinstance(content, str) else []
    )
    if isinstance(content, (list, tuple)):
        parts = [_part(part) for part in content]
    for call in message.get("tool_calls") or ():
        function = call.get("function") or {}
        called = {"name": function.get("name"), "arguments": function.get("arguments")}
        parts.append({"type": "tool_call", "id": call.get("id"), **called})
    return {"role": role, "parts": parts}


def _part(part: object) -> dict[str, object]:
    if not isinstance(part, Mapping):
        return {"type": type(part).__name__}
    if isinstance(part.get("text"), str):
        return {"type": "text", "content": part["text"]}
    address = part.get("image_url")
    address = address.get("url") if isinstance(address, Mapping) else address
    if isinstance(address, str) and address.startswith(("http://", "https://")):
        return {"type": "uri", "uri": address}
    return {"type": str(part.get("type"))}


def _text(content: object) -> object:
    if isinstance(content, (list, tuple)):
        return [_part(part) for part in content]
    return content


def _encode(value: object) -> str:
    return orjson.dumps(json_value(value)).decode()
