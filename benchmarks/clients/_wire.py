"""The three wire formats as a raw HTTP client needs them: the request, and the text of the answer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from . import Messages, Target


def headers(target: Target) -> dict[str, str]:
    """The headers of a request."""
    own = {
        "openai": {"Authorization": f"Bearer {target.key}"},
        "anthropic": {"Authorization": f"Bearer {target.key}", "anthropic-version": "2026-10-21"},
        "gemini": {"x-goog-api-key": str(target.key)},
    }
    return {"Content-Type": "application/json", **own[target.route]}


def url(target: Target, *, stream: bool = False) -> str:
    """The address of a request."""
    if target.route == "openai":
        return f"{target.base_url}/chat/completions"
    if target.route == "anthropic":
        return f"{target.base_url}/v1/messages"
    method = "streamGenerateContent?alt=sse" if stream else "generateContent"
    return f"{target.base_url}/v1/models/{target.model}:{method}"


def body(target: Target, messages: Messages, *, stream: bool = False) -> dict[str, Any]:
    """The body of a request."""
    if target.route == "gemini":
        return {"contents": contents(messages)}
    fields: dict[str, Any] = {"model": target.model, "messages": messages}
    if target.route == "anthropic":
        fields["max_tokens"] = 1000
    if stream:
        fields["stream"] = True
    return fields


def contents(messages: Messages) -> list[dict[str, Any]]:
    """Messages in the form of Gemini."""
    roles = {"user": "user", "assistant": "model"}
    return [{"role": roles[one["role"]], "parts": [{"text": one["content"]}]} for one in messages]


def text(target: Target, reply: Any) -> str:
    """The text of a reply."""
    if target.route == "openai":
        return reply["choices"][0]["message"]["content"]
    if target.route == "anthropic":
        return reply["content"][0]["text"]
    return reply["candidates"][0]["content"]["parts"][0]["text"]


def piece(target: Target, event: Any) -> str:
    """The text in an event of a stream; empty for an event without text."""
    if target.route == "openai":
        choices = event["choices"]
        return (choices[0]["delta"].get("content") or "") if choices else ""
    if target.route == "anthropic":
        return event["delta"]["text"] if event["type"] == "content_block_delta" else ""
    candidates = event.get("candidates")
    parts = candidates[0].get("content", {}).get("parts") if candidates else None
    return parts[0].get("text", "") if parts else ""


class Events:
    """Splits the bytes of a stream into its JSON events in the simplest way, which is the fastest."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[Any]:
        r"""Add received bytes, and yield the events that are complete.

        >>> list(Events().feed(b'data: {"a": 1}\n\ndata: [DONE]\n\ndata: {"b'))
        [{'a': 1}]
        """
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            if line.startswith(b"data: {"):
                yield json.loads(line[6:])
