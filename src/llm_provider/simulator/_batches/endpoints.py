"""Finds the batch or file endpoint of a path and serves it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ..formats.wire_format import MALFORMED
from . import anthropic, gemini, hosts, models, openai
from .exchange import Reply

if TYPE_CHECKING:
    from collections.abc import Callable

    from .exchange import Call
    from .jobs import BatchStore

__all__ = ["find_owner", "name_operation", "serve"]

_PROVIDER = re.compile(
    r"/(?P<provider>(?!(?:v1(?:beta)?|upload|download|files|batches|models)(?:/|$))[\w-]+)(?=/)"
)


def find_owner(path: str) -> tuple[str, str] | None:
    """The provider whose batch or file endpoint has a path, and the path without the provider's name.

    >>> find_owner("/groq/v1/batches"), find_owner("/v1/messages/batches/x"), find_owner("/v1/messages")
    (('groq', '/v1/batches'), ('anthropic', '/v1/messages/batches/x'), None)
    """
    prefix = _PROVIDER.match(path)
    named = None if prefix is None else prefix["provider"]
    rest = path if prefix is None else path[prefix.end() :]
    if named == "azure":
        rest = rest.removeprefix("/openai")
    if models.PATH.fullmatch(rest):
        return (named or ("gemini" if rest.startswith("/v1beta") else "openai"), rest)
    if named == "anthropic" and anthropic.FILES.fullmatch(rest):
        return named, rest
    if named in hosts.HOSTS and hosts.PATHS.fullmatch(rest):
        return named, rest
    if anthropic.PATHS.fullmatch(rest):
        return (named or "anthropic", rest) if named in (None, "anthropic") else None
    if named == "gemini" or (named is None and not openai.PATHS.fullmatch(rest)):
        return ("gemini", rest) if gemini.PATHS.fullmatch(rest) else None
    return (named or "openai", rest) if openai.PATHS.fullmatch(rest) else None


def name_operation(method: str, path: str) -> str:
    """The name of an operation, by which faults find it, such as "batches.create" or "files.upload".

    >>> name_operation("POST", "/v1/batches"), name_operation("GET", "/v1/files/f/content")
    ('batches.create', 'files.download')
    """
    if path.endswith("/models"):
        return "models.list"
    kind = "files" if re.search(r"/(files|datasets)\b", path) else "batches"
    kind = "responses" if "/responses/" in path else kind
    kind = "interactions" if "/interactions/" in path else kind
    if "/cachedContents" in path:
        return {"POST": "caches.create", "PATCH": "caches.update"}.get(method, "caches")
    if re.search(r"[/:]cancel$", path):
        return f"{kind}.cancel"
    if re.search(r"/content$|:download$|/results$|^/download/", path):
        return "files.download" if kind == "files" else "batches.results"
    if method == "PUT" or path.endswith(":upload"):
        return "files.store"
    if method == "POST":
        return "files.upload" if kind == "files" else "batches.create"
    if method == "DELETE":
        return f"{kind}.delete"
    return (
        f"{kind}.list"
        if re.search(r"/(batches|files|jobs|batchInferenceJobs)$", path)
        else f"{kind}.retrieve"
    )


def serve(store: BatchStore, call: Call) -> Reply:
    """Answer a request."""
    store.advance()
    endpoints: dict[str, Callable[[BatchStore, Call], Reply | None]]
    endpoints = {"anthropic": anthropic.serve, "gemini": gemini.serve, **hosts.HOSTS}
    function = models.serve if call.path.endswith("/models") else endpoints.get(call.provider, openai.serve)
    try:
        reply = function(store, call)
    except MALFORMED as mistake:
        return call.refuse(400, f"the request is malformed: {mistake}")
    return reply or call.refuse(404, f"nothing is served at {call.path}")
