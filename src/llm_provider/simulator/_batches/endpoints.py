"""Finds the batch or file endpoint of a path and serves it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from . import anthropic, gemini, models, openai
from .exchange import Call, Reply, refuse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .jobs import BatchStore

__all__ = ["name_of", "owner_of", "serve"]

_PROVIDER = re.compile(
    r"/(?P<provider>(?!(?:v1(?:beta)?|upload|download|files|batches|models)(?:/|$))[\w-]+)(?=/)"
)
_MALFORMED = (AttributeError, IndexError, KeyError, TypeError, ValueError)


def owner_of(path: str) -> tuple[str, str] | None:
    """The provider whose batch or file endpoint has a path, and the path without the provider's name.

    >>> owner_of("/groq/v1/batches"), owner_of("/v1/messages/batches/x"), owner_of("/v1/messages")
    (('groq', '/v1/batches'), ('anthropic', '/v1/messages/batches/x'), None)
    """
    found = _PROVIDER.match(path)
    named = None if found is None else found["provider"]
    rest = path if found is None else path[found.end() :]
    if models.PATH.fullmatch(rest):
        return (named or ("gemini" if rest.startswith("/v1beta") else "openai"), rest)
    if named == "anthropic" and anthropic.FILES.fullmatch(rest):
        return named, rest
    if anthropic.PATHS.fullmatch(rest):
        return (named or "anthropic", rest) if named in (None, "anthropic") else None
    if named == "gemini" or (named is None and not openai.PATHS.fullmatch(rest)):
        return ("gemini", rest) if gemini.PATHS.fullmatch(rest) else None
    return (named or "openai", rest) if openai.PATHS.fullmatch(rest) else None


def name_of(method: str, path: str) -> str:
    """The name of an operation, by which faults find it, such as "batches.create" or "files.upload".

    >>> name_of("POST", "/v1/batches"), name_of("GET", "/v1/files/f/content")
    ('batches.create', 'files.download')
    """
    if path.endswith("/models"):
        return "models.list"
    kind = "files" if "/files" in path else "batches"
    if re.search(r"[/:]cancel$", path):
        return "batches.cancel"
    if re.search(r"/content$|:download$|/results$|^/download/", path):
        return "files.download" if kind == "files" else "batches.results"
    if method == "POST":
        return "files.upload" if kind == "files" else "batches.create"
    if method == "DELETE":
        return f"{kind}.delete"
    return f"{kind}.list" if re.search(r"/(batches|files)$", path) else f"{kind}.retrieve"


def serve(
    store: BatchStore,
    *,
    provider: str,
    method: str,
    path: str,
    query: bytes,
    headers: Mapping[bytes, bytes],
    key: str,
    body: bytes,
    prefixed: bool,
    scheme: str,
) -> Reply:
    """Answer a request. `prefixed` says whether its path began with the provider's name."""
    host = headers.get(b"host", b"127.0.0.1").decode("latin-1")
    call = Call(
        provider=provider,
        method=method,
        path=path,
        query=dict(parse_qsl(query.decode("latin-1"))),
        headers=headers,
        key=key,
        body=body,
        root=f"{scheme}://{host}{f'/{provider}' if prefixed else ''}",
    )
    store.advance()
    form: Any = {"anthropic": anthropic, "gemini": gemini}.get(provider, openai)
    if path.endswith("/models"):
        form = models
    try:
        reply = form.serve(store, call)
    except _MALFORMED as mistake:
        return refuse(call, 400, f"the request is malformed: {mistake}")
    return reply or refuse(call, 404, f"nothing is served at {path}")
