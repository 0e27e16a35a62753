"""Gemini's ``cachedContents``: beginnings of prompts that are stored for some seconds.

A request that names a content has the rest of the prompt, and the answer is that of the whole.
Storing bills the tokens as input. The rent is on no bill here: it depends on the time alone.
"""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any

import orjson

from ..formats import gemini
from ..formats.content import convert_to_tokens
from ..formats.wire_format import Problem, Request, Usage
from .exchange import Call, Reply, write_date
from .references import StoredContent

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .jobs import BatchStore

__all__ = ["PATH", "expand", "find", "serve"]

PATH = re.compile(r"/(?:v1|v1beta)/(cachedContents(?:/[\w-]+)?)")
_INSTRUCTIONS = ("systemInstruction", "tools", "toolConfig")


def serve(store: BatchStore, call: Call, name: str) -> Reply:
    """Create, show, keep for longer or delete a content."""
    fields = orjson.loads(call.body or b"{}")
    if name == "cachedContents" and call.method == "POST":
        return _create(store, call, fields)
    stored = find(store.contents, name)
    if stored is None:
        return call.refuse(403, "CachedContent not found (or permission denied)")
    if call.method == "DELETE":
        del store.contents[name]
        return Reply(200, {})
    if call.method == "PATCH":
        stored.ends = time.time() + float(fields["ttl"].rstrip("s"))
    return Reply(200, _describe(stored))


def _create(store: BatchStore, call: Call, fields: dict[str, Any]) -> Reply:
    model = fields["model"].removeprefix("models/")
    readable = {**fields, "contents": fields.get("contents") or [{"role": "user", "parts": []}]}
    prompt = gemini.read(Request(call.provider, readable, call.headers, f"/models/{model}:generateContent"))
    if isinstance(prompt, Problem):
        return call.refuse(prompt.status, prompt.message or "")
    tokens, least = convert_to_tokens(prompt.characters), 2048 if model.startswith("gemini-2") else 4096
    if tokens < least:
        sizes = f"total_token_count={tokens}, min_total_token_count={least}"
        return call.refuse(400, f"Cached content is too small. {sizes}")
    stored = StoredContent(
        f"cachedContents/{store.next_identifier()}",
        fields,
        tokens,
        time.time() + float(fields["ttl"].rstrip("s")),
    )
    store.contents[stored.name] = stored
    store.bill(prompt, model, call.key, Usage(input_tokens=tokens), batch=False)
    return Reply(200, _describe(stored))


def _describe(stored: StoredContent) -> dict[str, Any]:
    return {
        "name": stored.name,
        "model": stored.body["model"],
        "expireTime": write_date(stored.ends),
        "usageMetadata": {"totalTokenCount": stored.tokens},
    }


def find(contents: Mapping[str, StoredContent], name: str) -> StoredContent | None:
    """A content that has not expired."""
    stored = contents.get(name)
    return stored if stored is not None and stored.ends > time.time() else None


def expand(contents: Mapping[str, StoredContent], body: dict[str, Any]) -> dict[str, Any] | Problem:
    """The whole prompt of a request that names a content, with the size of the content for its usage."""
    stored = find(contents, body["cachedContent"])
    if stored is None:
        return Problem("CachedContent not found (or permission denied)", status=403)
    if not body.keys().isdisjoint(_INSTRUCTIONS):
        return Problem(
            "CachedContent can not be used with GenerateContent request setting system_instruction, tools "
            "or tool_config."
        )
    beginning = {name: stored.body[name] for name in _INSTRUCTIONS if name in stored.body}
    contents_of_both = [*stored.body.get("contents", ()), *body["contents"]]
    return {**body, **beginning, "contents": contents_of_both, "cachedTokens": stored.tokens}
