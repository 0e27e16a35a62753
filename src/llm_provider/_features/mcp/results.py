"""The result of an MCP tool, as content that a model reads."""

from __future__ import annotations

import base64
import json
from typing import Any

from ..._core.json_values import JSONMapping
from ..._core.requests.media import media_type, part_of

_MOST_TEXT = 400_000
"""Characters of a text: about 100,000 tokens, half of what most models read."""

_MOST_ERROR = 10_000

_SHOWN = ("image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf")
"""The media types that the result of a tool may have."""


class ToolError(Exception):
    """A tool of an MCP server failed. The model reads the message."""


def read_result(result: Any) -> str | list[JSONMapping]:
    """The content of a `CallToolResult`: a text, or parts with images. `ToolError` if it failed."""
    parts = [_part_of_block(block) for block in result.content]
    texts = [part["text"] for part in parts if part["type"] == "text"]
    structured = result.structured_content
    if structured is not None and not _is_repeated(structured, texts):
        texts.append(json.dumps(structured, ensure_ascii=False, separators=(",", ":")))
        parts.append({"type": "text", "text": texts[-1]})
    if result.is_error:
        raise ToolError(shorten("\n".join(texts) or "the tool failed, and gave no reason"))
    if len(texts) == len(parts):
        return _limit("\n".join(texts))
    return [{**part, "text": _limit(part["text"])} if "text" in part else part for part in parts]


def _part_of_block(block: Any) -> JSONMapping:
    if block.type in ("image", "audio"):
        return _part_of_data(block.data, block.mime_type)
    if block.type == "text":
        text = block.text
    elif block.type == "resource":
        resource = block.resource
        if hasattr(resource, "blob"):
            return _part_of_data(resource.blob, f"{resource.mime_type or 'data'} {resource.uri}")
        text = f"{resource.uri}\n{resource.text}"
    else:  # a link to a resource
        text = json.dumps({"uri": str(block.uri), "name": block.name, "description": block.description})
    return {"type": "text", "text": text}


def _part_of_data(encoded: str, described: str) -> JSONMapping:
    """An image or a PDF as a part. Of other data the model reads the kind and the size."""
    try:
        # Some servers send a data URL, break lines, or leave out the padding.
        data = base64.b64decode("".join(encoded.rpartition(",")[2].split()) + "==")
    except ValueError:
        data = b""
    if media_type(data) in _SHOWN:
        return part_of(data, "the result")
    return {"type": "text", "text": f"[{described}, {len(data)} bytes, which are no image and no PDF]"}


def _is_repeated(structured: Any, texts: list[str]) -> bool:
    """Whether the texts say the same, as the protocol advises. A value that is no object is `result`."""
    values = []
    for text in texts:
        try:
            values.append(json.loads(text))
        except (ValueError, RecursionError):
            values.append(text)
    inner = structured.get("result") if isinstance(structured, dict) and len(structured) == 1 else structured
    return structured in values or inner in values or inner in (values, texts) or inner in texts


def _limit(text: str) -> str:
    if len(text) <= _MOST_TEXT:
        return text
    return f"{text[:_MOST_TEXT]}\n[{len(text) - _MOST_TEXT} more characters are left out]"


def shorten(message: str) -> str:
    """The beginning of a message of a server."""
    return message if len(message) <= _MOST_ERROR else f"{message[:_MOST_ERROR]}..."
