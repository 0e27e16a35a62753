"""The tokens that a request of Anthropic's Messages may use, and that its reply says it used. Pure."""

from typing import Any

from ...json_values import JSONMapping, JSONObject
from ...types.usage import Usage
from ..protocol import EncodedRequest
from ..shared import request_facts as shared
from ..shared.replies import count, find_counts
from ..shared.tool_charges import anthropic_tools, list_iterations, with_tools

_LABELS = frozenset({"role", "type", "id", "tool_use_id"})

ADDS_INPUT = frozenset({"container", "mcp_servers", "fallbacks"})
"""Fields that let Anthropic read files and the results of tools on other servers, and ask other models."""


def compacts(payload: JSONMapping) -> bool:
    """Whether the model may read the prompt once more, for a summary."""
    return "compact" in str(payload.get("context_management"))


def facts(encoded: EncodedRequest) -> shared.RequestFacts:
    payload = encoded.payload
    conversation = shared.Conversation(_LABELS, medium, map(payload.get, ("system", "messages")))
    tools, output = payload.get("tools") or (), payload.get("output_config")
    return shared.RequestFacts(
        variant=variant(encoded),
        max_output_tokens=shared.largest_limit(payload.get("max_tokens")),
        texts=conversation.texts,
        media=conversation.media,
        turns=conversation.turns,
        tools=tools,
        schemas=(output,) if output else (),
        adds_input=not ADDS_INPUT.isdisjoint(payload)
        or compacts(payload)
        or any(map(_runs_at_anthropic, tools)),
        # Any block, any tool and the request itself may set the lifetime of a cache entry.
        special_prices=lambda: shared.SpecialPrices(bool(shared.find_words(payload, "1h"))),
    )


def variant(encoded: EncodedRequest) -> str:
    return tier_variant(encoded.payload) or "standard"


def tier_variant(container: JSONMapping) -> str | None:
    """The service level's name in `prices.csv`, if there is one. Fast mode is a field beside the tier."""
    return "fast" if container.get("speed") == "fast" else shared.variant_of(container.get("service_tier"))


def medium(part: JSONObject) -> shared.Medium | None:
    """The medium in a content block, None if the block holds text."""
    kind = part.get("type")
    if kind not in ("image", "document"):
        return None
    source = part.get("source")
    if not isinstance(source, dict) or source.get("type") in ("text", "content"):
        return None
    return shared.Medium("image" if kind == "image" else "application", source.get("data"))


def _runs_at_anthropic(tool: Any) -> bool:
    """Whether Anthropic defines a tool, and may run it by itself and read its results."""
    return not isinstance(tool, dict) or tool.get("type", "custom") != "custom"


def usage(reply: Any) -> Usage | None:
    reported = find_counts(reply, "usage")
    if reported is None:
        return None
    # The counts of the message do not have the tokens of summaries.
    summaries = (entry for entry in list_iterations(reported) if entry.get("type") == "compaction")
    counts = sum(map(decode_usage, summaries), decode_usage(reported))
    return with_tools(counts, 0, anthropic_tools(reply, reported))


def decode_usage(usage: JSONMapping) -> Usage:
    """Anthropic's usage object, whose `input_tokens` excludes tokens that the prompt cache read or wrote.

    >>> decode_usage({"input_tokens": 5, "cache_read_input_tokens": 90, "output_tokens": 7})
    Usage(input_tokens=95, output_tokens=7, cache_read_input_tokens=90)
    """
    read, written = count(usage, "cache_read_input_tokens"), count(usage, "cache_creation_input_tokens")
    return Usage(
        input_tokens=count(usage, "input_tokens") + read + written,
        output_tokens=count(usage, "output_tokens"),
        cache_read_input_tokens=read,
        cache_write_input_tokens=written,
        cache_write_1h_input_tokens=_count_within(usage, "cache_creation", "ephemeral_1h_input_tokens"),
        reasoning_output_tokens=_count_within(usage, "output_tokens_details", "thinking_tokens"),
        web_searches=_count_within(usage, "server_tool_use", "web_search_requests"),
    )


def _count_within(usage: JSONMapping, group: str, name: str) -> int:
    counts = usage.get(group)
    return count(counts, name) if counts and isinstance(counts, dict) else 0
