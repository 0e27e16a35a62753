"""Anthropic's prompt cache: `cache_control` behind the blocks that end a common prefix.

A write costs 1.25 times the price of input and a read a tenth or less, so a breakpoint pays from the second
call on. The minima come from Anthropic's guide and litellm 1.109's model table, November 2026.
"""

import re
from collections.abc import Mapping

from ..._core.formats.anthropic.decode import PROVIDER
from ..._core.json_values import JSONMapping, JSONObject
from ..._core.requests.routing import Target
from . import settings as shared

_LIFETIME = 300.0
"""Seconds. Each read begins them anew."""

_MINIMA = (
    (r"claude-((opus|sonnet|haiku|fable|mythos)-5-[1-9]|opus-5|fable|mythos)", 512),
    (r"claude-(opus-4-[56]|haiku-4-5)", 4096),
    (r"claude-opus-4-7|claude-(3-5-)?(3-)?haiku", 2048),
)
_USUAL_MINIMUM = 1024

_UNMARKED = frozenset({"thinking", "redacted_thinking"})
"""Types of blocks that take no breakpoint."""


def serves(target: Target) -> bool:
    """Every Claude model has the cache. Another maker's model behind this format may not know the field."""
    return target.maker == PROVIDER and target.known_model.startswith("claude")


def minimum(model: str) -> int:
    """The fewest tokens of a prefix that Anthropic caches."""
    return next((tokens for pattern, tokens in _MINIMA if re.match(pattern, model)), _USUAL_MINIMUM)


def lifetime(model: str) -> float:
    return _LIFETIME


def is_implicit(model: str) -> bool:
    return False


def units(payload: JSONMapping) -> list[shared.Unit]:
    """The units of a prompt as Claude reads them: the tools first, then the system prompt."""
    if "cache_control" in payload:
        return []

    def takes(block: JSONMapping) -> bool:
        return block.get("type") not in _UNMARKED

    result: list[shared.Unit] = []
    for index, tool in enumerate(payload.get("tools") or ()):
        result.append(shared.json_unit("tool", tool, ("tools", index), instructs=True))
    if payload.get("system"):
        result += shared.content_units("system", payload["system"], ("system",), takes, instructs=True)
    contents = [payload.get("tools"), payload.get("system")]
    for index, message in enumerate(payload.get("messages") or ()):
        if isinstance(message, Mapping):
            contents.append(message.get("content"))
            path = ("messages", index, "content")
            result += shared.content_units(str(message.get("role")), contents[-1], path, takes)
    # The user may have set a breakpoint.
    return [] if shared.is_in_any("cache_control", contents) else result


def mark_prefix(payload: JSONObject, mark: shared.PrefixMark) -> JSONObject:
    path = shared.last_breakpoint(units(payload)[: mark.length])
    field = {"cache_control": {"type": "ephemeral"}}
    return payload if path is None else shared.add_at(payload, path, field, "text")
