"""The lists of models, in the form of each provider and in pages where it has pages."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from .exchange import Call, Reply

if TYPE_CHECKING:
    from .jobs import BatchStore

__all__ = ["MODELS", "PATH", "is_listed", "serve"]

PATH = re.compile(r"(?:/v1|/v1beta)?/models")

MODELS = {
    "openai": ("gpt-6.1-sol", "gpt-6.1-sol-2026-10-21", "text-embedding-3-small", "whisper-1"),
    "anthropic": ("claude-sonnet-5-5", "claude-haiku-5-5", "claude-sonnet-3"),
    "gemini": ("gemini-3.8-flash", "gemini-embedding-2", "veo-4"),
}
"""The models of each provider. Any other name is served too."""

_OF_HOSTS = ("openai/gpt-oss-120b", "some-new-model")
_ACTIONS = {"gemini-embedding-2": ["embedContent"], "veo-4": ["predictLongRunning"]}


def is_listed(provider: str, model: str) -> bool:
    """Whether a model is in the list of its provider."""
    return model in MODELS.get(provider, _OF_HOSTS)


def serve(store: BatchStore, call: Call) -> Reply:
    """Answer a request for the list of models."""
    names = MODELS.get(call.provider, _OF_HOSTS)
    if call.method != "GET":
        return call.refuse(404, f"nothing is served at {call.path}")
    if call.provider == "anthropic":
        return _list_claudes(call, names)
    if call.provider == "gemini":
        page, more = call.select_page(len(names))
        return Reply(200, {"models": list(map(_describe_gemini, names[page])), **more})
    # Hosts add fields of their own.
    fields = {} if call.provider in MODELS else {"context_length": 131_072}
    model = {"object": "model", "created": 1, "owned_by": call.provider, **fields}
    return Reply(200, {"object": "list", "data": [{"id": name, **model} for name in names]})


def _list_claudes(call: Call, names: tuple[str, ...]) -> Reply:
    selected = call.select_page_after("after_id", names)
    page = names[selected]
    models = [
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
    ends = {"first_id": page[0] if page else None, "last_id": page[-1] if page else None}
    return Reply(200, {"data": models, "has_more": selected.stop < len(names), **ends})


def _describe_gemini(name: str) -> dict[str, Any]:
    return {
        "name": f"models/{name}",
        "displayName": name,
        "inputTokenLimit": 1_000_000,
        "outputTokenLimit": 60_000,
        "supportedGenerationMethods": _ACTIONS.get(name, ["generateContent", "countTokens"]),
    }
