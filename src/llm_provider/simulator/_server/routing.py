"""The table of operations: which path belongs to which wire format and provider."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from ..formats import (
    anthropic,
    anthropic_token_counts,
    cloud_anthropic,
    gemini,
    gemini_decisions,
    gemini_embeddings,
    gemini_interactions,
    gemini_token_counts,
    openai_chat,
    openai_decisions,
    openai_embeddings,
    openai_responses,
    scoring,
)

if TYPE_CHECKING:
    from ..formats.wire_format import WireFormat

__all__ = ["OPERATIONS", "Operation", "Target", "find_target"]

PATHS_REMEMBERED = 4096


class Target(NamedTuple):
    """The provider and the wire format of a request."""

    provider: str
    format: WireFormat


class Operation(NamedTuple):
    """An operation of a provider's API.

    Attributes:
        path: regular expression for its path, without the leading name of a provider.
        owner: the provider of a path without the name of a provider.
        format: the module of ``formats/`` that reads its requests and writes its answers.
    """

    path: str
    owner: str
    format: WireFormat


_VERTEX = r"/v1(?:/projects/[^/]+/locations/[^/]+)?/publishers"

# A new operation is one more row, and one more module in formats/ unless an existing one serves it.
OPERATIONS = (
    Operation(r"(?:(?:/openai)?/v1)?/chat/completions", "openai", openai_chat),
    Operation(r"(?:(?:/openai)?/v1)?/responses", "openai", openai_responses),
    Operation(r"(?:(?:/openai)?/v1)?/embeddings", "openai", openai_embeddings),
    # Both providers call it the same.
    Operation(r"/gemini/v1(?:beta)?/decisions|/v1beta/decisions", "gemini", gemini_decisions),
    Operation(r"(?:(?:/openai)?/v1)?/decisions", "openai", openai_decisions),
    Operation(r"(?:/v1)?/(?:completions|tokenize)|/completion|/generate", "vllm", scoring),
    Operation(r"(?:/anthropic)?/v1/messages", "anthropic", anthropic),
    Operation(r"(?:/anthropic)?/v1/messages/count_tokens", "anthropic", anthropic_token_counts),
    Operation(r"/v1(?:beta)?/models/[^:]+:(?:generate|streamGenerate)Content", "gemini", gemini),
    Operation(r"/v1(?:beta)?/interactions", "gemini", gemini_interactions),
    Operation(r"/v1(?:beta)?/models/[^:]+:(?:embedContent|batchEmbedContents)", "gemini", gemini_embeddings),
    Operation(r"/v1(?:beta)?/models/[^:]+:countTokens", "gemini", gemini_token_counts),
    # The addresses of clouds, in which the model or the project is a part of the path.
    Operation(_VERTEX + r"/google/models/[^:]+:(?:generate|streamGenerate)Content", "vertex_ai", gemini),
    Operation(
        _VERTEX + r"/google/models/[^:]+:(?:batchEmbedContents|predict)", "vertex_ai", gemini_embeddings
    ),
    Operation(_VERTEX + r"/google/models/[^:]+:countTokens", "vertex_ai", gemini_token_counts),
    Operation(_VERTEX + r"/anthropic/models/count-tokens:rawPredict", "vertex_ai", anthropic_token_counts),
    Operation(
        _VERTEX + r"/anthropic/models/[^:]+:(?:rawPredict|streamRawPredict)", "vertex_ai", cloud_anthropic
    ),
    Operation(r"/model/[^/]+/invoke(?:-with-response-stream)?", "bedrock", cloud_anthropic),
)

_PROVIDER = r"(?:/(?P<provider>(?!v1(?:beta)?/)[\w-]+))?"
_PATTERNS = tuple((re.compile(f"{_PROVIDER}(?:{operation.path})"), operation) for operation in OPERATIONS)


@lru_cache(maxsize=PATHS_REMEMBERED)
def find_target(path: str) -> Target | None:
    """The provider and the wire format of a path; None if the path serves nothing.

    >>> find_target("/together_ai/v1/chat/completions").provider, find_target("/v1/messages").provider
    ('together_ai', 'anthropic')
    """
    for pattern, operation in _PATTERNS:
        match = pattern.fullmatch(path)
        if match is not None:
            return Target(match["provider"] or operation.owner, operation.format)
    return None
