"""What a reply tells about its bill beyond tokens: the searches made for the model, and its own cost.

OpenAI bills the web searches of Responses by action, and one search for each request to a search model of
Chat Completions. Gemini 3 and later bill each search query, earlier ones each prompt that was grounded. These
hosts report the cost of a request in USD, in the usage of their replies:

| host | field |
|---|---|
| OpenRouter | `cost`; with a key of your own (`is_byok`) also `cost_details.upstream_inference_cost` |
| xAI | `cost_in_usd_ticks`, of which 10,000,000,000 are a dollar |
| Perplexity | `cost.total_cost` |
| DeepInfra | `estimated_cost` |
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .._runtime.exact_decimal import exact
from .adapter import count, part

if TYPE_CHECKING:
    from decimal import Decimal

    from .._types.usage import Usage

_TICK = -10
"""The power of ten in USD of xAI's unit."""

_MOST = 10**15

_COSTS = frozenset({"cost", "cost_in_usd_ticks", "estimated_cost"})

_SEARCH_MODEL = re.compile(r"-search-(preview|api)\b")
_BILLED_BY_PROMPT = re.compile(r"(models/)?gemini-[12]\b")


def with_searches(usage: Usage, searches: int) -> Usage:
    """A usage with some more searches; the usage itself if there are none."""
    return replace(usage, web_searches=usage.web_searches + searches) if searches else usage


def chat_searches(reply: Mapping[str, Any], usage: Mapping[str, Any]) -> int:
    """The searches of a chat completion.

    >>> [chat_searches({"model": model}, {}) for model in ("gpt-4o-search-preview-2025-03-11", "gpt-4o")]
    [1, 0]
    """
    if "server_tool_use" in usage:  # OpenRouter, and litellm for Anthropic's models
        return count(part(usage, "server_tool_use"), "web_search_requests")
    if "num_search_queries" in usage:  # Perplexity
        return count(usage, "num_search_queries")
    try:
        executed = reply["choices"][0]["message"].get("executed_tools")
    except (KeyError, IndexError, TypeError, AttributeError):
        executed = None
    if executed:  # Groq
        return sum(str(tool.get("type")).endswith("search") for tool in _dicts(executed))
    model = reply.get("model")
    return int(isinstance(model, str) and "search" in model and _SEARCH_MODEL.search(model) is not None)


def response_searches(items: Any) -> int:
    """The searches among the output items of a response. Opening a page of a result is free.

    >>> response_searches([{"type": "web_search_call", "action": {"type": "search", "query": "bern"}},
    ...                    {"type": "web_search_call", "action": {"type": "open_page"}}, {"type": "message"}])
    1
    """
    return sum(
        part(item, "action").get("type", "search") == "search"
        for item in _dicts(items)
        if item.get("type") == "web_search_call" and item.get("status") != "failed"
    )


def gemini_searches(reply: Mapping[str, Any]) -> int:
    """The billed searches of a Gemini reply.

    >>> found = {"groundingMetadata": {"webSearchQueries": ["bern weather", "bern today"]}}
    >>> [gemini_searches({"candidates": [found], "modelVersion": model})
    ...  for model in ("gemini-3.8-flash", "gemini-2.5-pro")]
    [2, 1]
    """
    queries = 0
    for candidate in _dicts(reply.get("candidates")):
        grounding = candidate.get("groundingMetadata")
        if isinstance(grounding, dict):
            for name in ("webSearchQueries", "imageSearchQueries"):
                asked = grounding.get(name)
                queries += sum(map(bool, asked)) if isinstance(asked, list) else 0
    if queries > 1 and _BILLED_BY_PROMPT.match(str(reply.get("modelVersion"))):
        return 1
    return queries


def reported_cost(usage: Any) -> Decimal | None:
    """The USD that a usage object says the request cost; None if it says none.

    >>> str(reported_cost({"cost": 0.0161})), str(reported_cost({"cost_in_usd_ticks": 37_756_100}))
    ('0.0161', '0.0037756100')
    >>> str(reported_cost({"cost": 0.01, "is_byok": True, "cost_details": {"upstream_inference_cost": 0.2}}))
    '0.21'
    """
    if not isinstance(usage, dict) or _COSTS.isdisjoint(usage):
        return None
    cost = usage.get("cost")
    if cost is None:
        ticks = _amount(usage.get("cost_in_usd_ticks"))
        return _amount(usage.get("estimated_cost")) if ticks is None else exact().scaleb(ticks, _TICK)
    if isinstance(cost, dict):
        return _amount(cost.get("total_cost"))
    own_key = usage.get("is_byok")
    charged = _amount(cost, free=own_key is not None)
    if charged is None or not own_key:
        return charged
    upstream = _amount(part(usage, "cost_details").get("upstream_inference_cost"), free=True)
    # The bill of the account behind the own key is a part of the cost. OpenRouter does not always know it.
    return None if upstream is None else exact().add(charged, upstream)


def is_own_cost(usage: Mapping[str, Any]) -> bool:
    """Whether the cost in a usage that came through litellm is the provider's.

    litellm adds a plain `cost` to the usage of streams, which is its own computation.
    """
    cost = usage.get("cost")
    return cost is None or isinstance(cost, dict) or "is_byok" in usage or "cost_details" in usage


def without_cost(usage: Any) -> Any:
    """A usage object without its cost, which belongs to the request and not to each of its texts."""
    if not isinstance(usage, dict):
        return usage
    return {name: value for name, value in usage.items() if "cost" not in name}


def _amount(value: Any, *, free: bool = False) -> Decimal | None:
    """A number of USD or ticks; None for anything else.

    Many servers write 0 where they compute no cost, so 0 is believed only where `free` says so.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    # NaN is in no range.
    if not 0 <= value < _MOST or (value == 0 and not free):
        return None
    from decimal import Decimal

    return Decimal(repr(value))


def _dicts(items: Any) -> Iterable[dict[str, Any]]:
    return (item for item in items if isinstance(item, dict)) if isinstance(items, list) else ()
