"""Uploaded files, and the errors of requests that are too large or refer to files that were not uploaded."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..formats.wire_format import Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

__all__ = ["MOST_IMAGE_CHARACTERS", "StoredContent", "StoredFile", "check_files"]

MOST_IMAGE_CHARACTERS = 5 * 2**20
"""The longest image in a request to Anthropic, in base64."""

_MOST_BYTES = {"anthropic": 32_000_000, "gemini": 20_971_520, "openai": 50_000_000}
_NAMES = (b'"file_id"', b'"fileUri"', b'"file_uri"')
_GEMINI_FILE = re.compile(r"(?:https?://.*/)?(?:v1(?:beta)?/)?files/([\w-]+)")


@dataclass(slots=True)
class StoredContent:
    """The beginning of prompts that Gemini stores; ``ends`` is a Unix time."""

    name: str
    body: dict[str, Any]
    tokens: int
    ends: float


@dataclass(slots=True)
class StoredFile:
    """An uploaded file, or the results of a batch."""

    identifier: str
    name: str
    purpose: str
    content: bytes
    created: float
    gone: float | None = None
    """Unix time from which on it cannot be read."""
    provider: str = ""
    key: str = ""
    """The API key of its upload."""
    media_type: str = ""
    ready: float = 0.0
    """Unix time from which on messages may refer to it."""


def check_files(
    find_file: Callable[[str], StoredFile | None],
    provider: str,
    key: str,
    raw: bytes,
    body: Mapping[str, Any],
) -> Problem | None:
    """The error that answers a request because of its files; None if there is none.

    Args:
        find_file: Returns the uploaded file of an id; None if there is none.
        provider: The provider.
        key: The API key of the request.
        raw: The body as it came.
        body: The body.
    """
    limit = _MOST_BYTES.get(provider)
    if limit is not None and len(raw) > limit:
        if provider == "anthropic":
            return Problem("Request exceeds the maximum size", status=413)
        return Problem(f"Request payload size exceeds the limit: {limit} bytes.")
    if provider == "anthropic" and len(raw) > MOST_IMAGE_CHARACTERS:
        for part in _walk_objects(body.get("messages")):
            if part.get("type") == "image" and len(_read_data(part)) > MOST_IMAGE_CHARACTERS:
                size = f"{len(_read_data(part))} bytes > {MOST_IMAGE_CHARACTERS} bytes"
                return Problem(f"messages: image exceeds 5 MB maximum: {size}")
    if limit is None or not any(name in raw for name in _NAMES):
        return None
    for part in _walk_objects([body.get(name) for name in ("messages", "input", "contents")]):
        problem = _check_file(find_file, provider, key, part)
        if problem is not None:
            return problem
    return None


def _check_file(
    find_file: Callable[[str], StoredFile | None], provider: str, key: str, part: dict[str, Any]
) -> Problem | None:
    if provider == "gemini":
        path = _GEMINI_FILE.fullmatch(str(part.get("fileUri") or part.get("file_uri") or ""))
        if path is None:
            return None
        file = find_file(path[1])
        if file is None or (file.provider, file.key) != (provider, key):
            message = f"You do not have permission to access the File {path[1]} or it may not exist."
            return Problem(message, status=403)
        if time.time() < file.ready:
            message = f"The File {path[1]} is not in an ACTIVE state and usage is not allowed."
            return Problem(message)
        return None
    identifier = part.get("file_id")
    if not isinstance(identifier, str) or part.get("type") == "file_citation":
        return None
    file = find_file(identifier)
    if file is not None and (file.provider, file.key) == (provider, key):
        return None
    if provider == "anthropic":
        return Problem(f"File not found: {identifier}", status=404)
    return Problem(f"Files ['{identifier}'] were not found.")


def _read_data(part: dict[str, Any]) -> str:
    source = part.get("source")
    return str(source.get("data") or "") if isinstance(source, dict) else ""


def _walk_objects(value: Any) -> Iterator[dict[str, Any]]:
    """Every object in a JSON value."""
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for inner in value:
            yield from _walk_objects(inner)
