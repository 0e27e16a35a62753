"""The wire format of Gemini's ``embedContent`` and ``batchEmbedContents``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from .content import CHARACTERS_PER_TOKEN, count_tokens, read_text
from .gemini import refuse_length, refuse_rate, write_error, write_error_frame, write_limit_headers
from .vectors import embeds, find_dimensions, make_vector
from .wire_format import Completion, Problem, Prompt, Request
from .wire_format import stream_nothing as stream

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "read", "refuse_length", "refuse_rate", "reject", "reply", "stream", "write_error", "write_error_frame",
    "write_limit_headers",
]  # fmt: skip

MAX_REQUESTS = 100
MAX_DIMENSIONS = 3072

# Like the real models, the simulated ones cut a longer text instead of refusing it.
_MAX_TEXT_TOKENS = {"gemini-embedding-001": 2048, "gemini-embedding-2": 8192}

_MEDIUM_TOKENS = 258


def read(request: Request) -> Prompt | Problem:
    """Understand a request of either method; the model is in the path."""
    model, action = _read_path(request)
    entries = _read_entries(request)
    if entries is None:
        field = "BatchEmbedContentsRequest.requests" if action else "EmbedContentRequest.content"
        return Problem(f"* {field}: {field.rpartition('.')[2]} is not specified")
    for entry in entries:
        if action and "/publishers/" not in request.path and entry.get("model") != f"models/{model}":
            return Problem(f"* BatchEmbedContentsRequest.requests: model must be models/{model}")
        if not _read_text(entry):
            return Problem("* EmbedContentRequest.content: contents must not be empty")
        dimensions = _read_dimensions(entry)
        if dimensions is not None and (type(dimensions) is not int or not 0 < dimensions <= MAX_DIMENSIONS):
            return Problem(f"output_dimensionality must be from 1 to {MAX_DIMENSIONS}, inclusive")
    return Prompt(
        model=model,
        text="\n".join(map(_read_text, entries)),
        characters=sum(_count_tokens(model, entry) for entry in entries) * CHARACTERS_PER_TOKEN,
        samples=0,
        request=request,
    )


def _read_path(request: Request) -> tuple[str, bool]:
    """The model, and whether several texts are asked for at once."""
    model, _, action = request.path.rpartition("/models/")[2].partition(":")
    return model, action == "batchEmbedContents"


def _read_entries(request: Request) -> list[Mapping[str, Any]] | None:
    """The single requests in a request."""
    if request.path.endswith(":predict"):
        options = request.body.get("parameters", {})
        return [
            {"content": {"parts": [{"text": text["content"]}]}, **options}
            for text in request.body["instances"]
        ]
    if not _read_path(request)[1]:
        return [request.body] if isinstance(request.body.get("content"), dict) else None
    entries = request.body.get("requests")
    return entries if isinstance(entries, list) and entries else None


def _read_text(entry: Mapping[str, Any]) -> str:
    """The text of an entry, and the JSON of its media."""
    parts = entry["content"]["parts"]
    return read_text(parts)[0] + "".join(json.dumps(part) for part in parts if "text" not in part)


def _count_tokens(model: str, entry: Mapping[str, Any]) -> int:
    tokens = count_tokens(read_text(entry["content"]["parts"])[0])
    return min(tokens, _MAX_TEXT_TOKENS.get(model, tokens)) + _count_media(entry)


def _count_media(entry: Mapping[str, Any]) -> int:
    return _MEDIUM_TOKENS * sum("text" not in part for part in entry["content"]["parts"])


def _read_dimensions(entry: Mapping[str, Any]) -> Any:
    entry = entry.get("embedContentConfig", entry)
    return entry.get("outputDimensionality", entry.get("output_dimensionality"))


def reject(prompt: Prompt) -> Problem | None:
    """The error for too many texts, or for a model that does not embed."""
    if len(_read_entries(prompt.request) or ()) > MAX_REQUESTS:
        message = "* BatchEmbedContentsRequest.requests: at most 100 requests can be in one batch\n"
        return Problem(message)
    if not embeds(prompt.model):
        message = (
            f"models/{prompt.model} is not found for API version v1, or is not supported for embedContent."
        )
        return Problem(message, status=404)
    return None


def reply(prompt: Prompt, completion: Completion) -> dict[str, Any]:
    """An ``EmbedContentResponse`` or a ``BatchEmbedContentsResponse``."""
    vectors = [
        {"values": make_vector(_read_text(entry), _read_dimensions(entry) or find_dimensions(prompt.model))}
        for entry in _read_entries(prompt.request) or ()
    ]
    tokens = completion.usage.input_tokens
    if prompt.request.path.endswith(":predict"):
        counts = [count_tokens(_read_text(entry)) for entry in _read_entries(prompt.request) or ()]
        return {
            "predictions": [
                {"embeddings": {**vector, "statistics": {"token_count": float(count), "truncated": False}}}
                for vector, count in zip(vectors, counts, strict=True)
            ]
        }
    # The details have another name here than in answers of ``generateContent``.
    media = sum(map(_count_media, _read_entries(prompt.request) or ()))
    read = (("TEXT", tokens - media), ("IMAGE", media))
    details = [{"modality": kind, "tokenCount": each} for kind, each in read if each]
    usage = {"promptTokenCount": tokens, "promptTokenDetails": details}
    embeddings = {"embeddings": vectors} if _read_path(prompt.request)[1] else {"embedding": vectors[0]}
    return {**embeddings, "usageMetadata": usage}
