"""The wire format of Gemini's ``embedContent`` and ``batchEmbedContents``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .content import CHARACTERS_PER_TOKEN, count_tokens, text_of
from .gemini import context_length, error, error_frame, limit_headers, rate_limited
from .vectors import dimensions_of, embeds, vector_of
from .wire_format import Completion, Frame, Problem, Prompt, Request

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = [
    "context_length",
    "error",
    "error_frame",
    "frames",
    "limit_headers",
    "rate_limited",
    "read",
    "rejection",
    "reply",
]

MAX_REQUESTS = 100
MAX_DIMENSIONS = 3072

# Like the real models, the simulated ones cut a longer text instead of refusing it.
_MAX_TEXT_TOKENS = {"gemini-embedding-001": 2048, "gemini-embedding-2": 8192}


def read(request: Request) -> Prompt | Problem:
    """Understand a request of either method; the model is in the path."""
    model, action = _place(request)
    entries = _entries(request)
    if entries is None:
        field = "BatchEmbedContentsRequest.requests" if action else "EmbedContentRequest.content"
        return Problem(status=400, message=f"* {field}: {field.rpartition('.')[2]} is not specified")
    for entry in entries:
        if action and entry.get("model") != f"models/{model}":
            return Problem(
                status=400, message=f"* BatchEmbedContentsRequest.requests: model must be models/{model}"
            )
        if not _text(entry):
            return Problem(status=400, message="* EmbedContentRequest.content: contents must not be empty")
        dimensions = _dimensions(entry)
        if dimensions is not None and (type(dimensions) is not int or not 0 < dimensions <= MAX_DIMENSIONS):
            return Problem(
                status=400, message=f"output_dimensionality must be from 1 to {MAX_DIMENSIONS}, inclusive"
            )
    return Prompt(
        provider=request.provider,
        model=model,
        text="\n".join(map(_text, entries)),
        characters=sum(_tokens(model, entry) for entry in entries) * CHARACTERS_PER_TOKEN,
        samples=0,
        request=request,
    )


def _place(request: Request) -> tuple[str, bool]:
    """The model, and whether several texts are asked for at once."""
    model, _, action = request.path.rpartition("/models/")[2].partition(":")
    return model, action == "batchEmbedContents"


def _entries(request: Request) -> list[Mapping[str, Any]] | None:
    """The single requests in a request."""
    if not _place(request)[1]:
        return [request.body] if isinstance(request.body.get("content"), dict) else None
    entries = request.body.get("requests")
    return entries if isinstance(entries, list) and entries else None


def _text(entry: Mapping[str, Any]) -> str:
    return text_of(entry["content"]["parts"])[0]


def _tokens(model: str, entry: Mapping[str, Any]) -> int:
    tokens = count_tokens(_text(entry))
    return min(tokens, _MAX_TEXT_TOKENS.get(model, tokens))


def _dimensions(entry: Mapping[str, Any]) -> Any:
    return entry.get("outputDimensionality", entry.get("output_dimensionality"))


def rejection(prompt: Prompt) -> Problem | None:
    """The error for too many texts, or for a model that does not embed."""
    if len(_entries(prompt.request) or ()) > MAX_REQUESTS:
        message = "* BatchEmbedContentsRequest.requests: at most 100 requests can be in one batch\n"
        return Problem(status=400, message=message)
    if not embeds(prompt.model):
        message = (
            f"models/{prompt.model} is not found for API version v1, or is not supported for embedContent."
        )
        return Problem(status=404, message=message)
    return None


def reply(prompt: Prompt, completion: Completion) -> dict[str, Any]:
    """An ``EmbedContentResponse`` or a ``BatchEmbedContentsResponse``."""
    vectors = [
        {"values": vector_of(_text(entry), _dimensions(entry) or dimensions_of(prompt.model))}
        for entry in _entries(prompt.request) or ()
    ]
    tokens = completion.usage.input_tokens
    # The details have another name here than in answers of ``generateContent``.
    usage = {
        "promptTokenCount": tokens,
        "promptTokenDetails": [{"modality": "TEXT", "tokenCount": tokens}],
    }
    found = {"embeddings": vectors} if _place(prompt.request)[1] else {"embedding": vectors[0]}
    return {**found, "usageMetadata": usage}


def frames(_prompt: Prompt, _completion: Completion) -> Iterator[Frame]:
    """No frames, because embeddings are not streamed."""
    return iter(())
