"""Which path belongs to which wire format and provider."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, cast

from .formats import (
    anthropic,
    gemini,
    gemini_embeddings,
    openai_chat,
    openai_embeddings,
    openai_responses,
)

if TYPE_CHECKING:
    from ._wire import WireFormat

__all__ = ["FORMATS", "Target", "find_target"]

PATHS_REMEMBERED = 4096


class Target(NamedTuple):
    """What a request is addressed to."""

    provider: str
    format: WireFormat


class _Row(NamedTuple):
    """A wire format: its paths, and whose it is where a path names no provider."""

    path: re.Pattern[str]
    owner: str
    format: WireFormat


_PROVIDER = r"(?:/(?P<provider>(?!v1(?:beta)?/)[\w-]+))?"

FORMATS = (
    _Row(re.compile(_PROVIDER + r"(?:/v1)?/chat/completions"), "openai", cast("WireFormat", openai_chat)),
    _Row(re.compile(_PROVIDER + r"(?:/v1)?/responses"), "openai", cast("WireFormat", openai_responses)),
    _Row(re.compile(_PROVIDER + r"/v1/messages"), "anthropic", cast("WireFormat", anthropic)),
    _Row(
        re.compile(_PROVIDER + r"/v1(?:beta)?/models/[^:]+:(?:generate|streamGenerate)Content"),
        "gemini",
        cast("WireFormat", gemini),
    ),
    _Row(re.compile(_PROVIDER + r"(?:/v1)?/embeddings"), "openai", cast("WireFormat", openai_embeddings)),
    _Row(
        re.compile(_PROVIDER + r"/v1(?:beta)?/models/[^:]+:(?:embedContent|batchEmbedContents)"),
        "gemini",
        cast("WireFormat", gemini_embeddings),
    ),
)


@lru_cache(maxsize=PATHS_REMEMBERED)
def find_target(path: str) -> Target | None:
    """The provider and wire format of a path, None if nothing is served there.

    >>> find_target("/together_ai/v1/chat/completions").provider, find_target("/v1/messages").provider
    ('together_ai', 'anthropic')
    """
    for row in FORMATS:
        found = row.path.fullmatch(path)
        if found is not None:
            return Target(found["provider"] or row.owner, row.format)
    return None
