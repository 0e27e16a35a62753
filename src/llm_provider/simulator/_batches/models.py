"""The lists of models, in the form of each provider and in pages where it has pages."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from .exchange import Call, Reply, refuse

if TYPE_CHECKING:
    from .jobs import BatchStore

__all__ = ["MODELS", "PATH", "serve"]

PATH = re.compile(r"(?:/v1|/v1beta)?/models")

MODELS = {
    "openai": ("gpt-6.1-sol", "gpt-6.1-sol-2026-10-21", "text-embedding-3-small", "whisper-1"),
    "anthropic": ("claude-sonnet-5-5", "claude-haiku-5-5", "claude-sonnet-3"),
    "gemini": ("gemini-3.8-flash", "gemini-embedding-2", "veo-4"),
}
"""The models of each provider. Any other name is served too."""

_OF_HOSTS = ("openai/gpt-oss-120b", "some-new-model")
_ACTIONS = {"gemini-embedding-2": ["embedContent"], "veo-4": ["predictLongRunning"]}


def serve(store: BatchStore, call: Call) -> Reply:
    """Answer a request for the list of models."""
    names = MODELS.get(call.provider, _OF_HOSTS)
    if call.method != "GET":
        return refuse(call, 404, f"nothing is served at {call.path}")
    if call.provider == "anthropic":
        return _anthropic(call, names)
    if call.provider == "gemini":
        start, size = int(call.query.get("pageToken") or 0), int(call.query.get("pageSize") or 50)
        more = {"nextPageToken": str(start + size)} if start + size < len(names) else {}
        return Reply(200, {"models": [_gemini(name) for name in names[start : start + size]], **more})
    listed = [{"id": name, "object": "model", "created": 1, "owned_by": call.provider} for name in names]
    if call.provider in MODELS:
        return Reply(200, {"object": "list", "data": listed})
    # Hosts add fields of their own.
    return Reply(200, {"object": "list", "data": [{**one, "context_length": 131_072} for one in listed]})


def _anthropic(call: Call, names: tuple[str, ...]) -> Reply:
    after, size = call.query.get("after_id"), int(call.query.get("limit") or 20)
    start = names.index(after) + 1 if after in names else 0
    page = names[start : start + size]
    shown: list[dict[str, Any]] = [
        {
            "id": name,
            "type": "model",
            "display_name": name,
            "created_at": "2026-01-01T00:00:00Z",
            "lifecycle": "retired" if name.endswith("-3") else "active",
            "max_input_tokens": 900_000,
            "max_tokens": 100_000,
        }
        for name in page
    ]
    more = start + size < len(names)
    ends = {"first_id": page[0] if page else None, "last_id": page[-1] if page else None}
    return Reply(200, {"data": shown, "has_more": more, **ends})


def _gemini(name: str) -> dict[str, Any]:
    return {
        "name": f"models/{name}",
        "displayName": name,
        "inputTokenLimit": 1_000_000,
        "outputTokenLimit": 60_000,
        "supportedGenerationMethods": _ACTIONS.get(name, ["generateContent", "countTokens"]),
    }
