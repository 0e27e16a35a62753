"""What single hosts and gateways say of searches, other tools and costs in the usage of a chat completion.

It is alone because it is read for such replies only. These hosts report the cost of a request in USD:

| host | field |
|---|---|
| OpenRouter | `cost`; with a key of your own (`is_byok`) also `cost_details.upstream_inference_cost` |
| xAI | `cost_in_usd_ticks`: 10,000,000,000 are a dollar |
| Perplexity | `cost.total_cost` |
| DeepInfra | `estimated_cost` |
| litellm's proxy | `cost` in streams, else the header `x-litellm-response-cost` |
"""

from decimal import Decimal
from typing import Any

from ..._core.formats.shared.replies import BILLED_BY_PROMPT, count, dicts, part
from ..._core.json_values import JSONMapping
from ..._core.runtime.exact_decimal import exact

_TICK = -10
"""The power of ten in USD of xAI's unit."""

_MOST = 10**15


def count_tools(reply: JSONMapping, usage: JSONMapping) -> tuple[int | None, int]:
    """The searches that a host names, or None, and the uses of tools without a known price.

    Groq bills code by the time that it runs, and xAI the sources that a search used. litellm shows the
    containers of Anthropic's models, and the maps of Gemini's.
    """
    choices, details = dicts(reply.get("choices"))[:1], part(usage, "prompt_tokens_details")
    message = part(choices[0], "message") if choices else {}
    executed = dicts(message.get("executed_tools"))  # Groq
    searches = sum(str(tool.get("type")).endswith("search") for tool in executed)
    unpriced = count(usage, "num_sources_used") + len(executed) - searches
    unpriced += isinstance(part(message, "provider_specific_fields").get("container"), dict)
    unpriced += count(details, "google_maps_grounding_requests")
    if "server_tool_use" in usage:  # OpenRouter, and litellm for Anthropic's models
        return count(part(usage, "server_tool_use"), "web_search_requests"), unpriced
    if "num_search_queries" in usage:  # Perplexity
        return count(usage, "num_search_queries"), unpriced
    if message.get("executed_tools"):
        return searches, unpriced
    searches = count(details, "web_search_requests")  # litellm for Gemini's models
    if BILLED_BY_PROMPT.match(str(reply.get("model"))):
        searches = min(searches, 1)
    return searches or None, unpriced


def read_cost(usage: JSONMapping) -> Decimal | None:
    """The USD that a usage object says the request cost; None if it says none."""
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


def read_number(text: str) -> Decimal | None:
    """The USD in a header; None if it has none, or 0 for a cost that is not known."""
    try:
        return _amount(float(text))
    except ValueError:
        return None


def is_own_cost(usage: JSONMapping) -> bool:
    """Whether the cost of a usage is the provider's. litellm adds its own, a plain `cost`, to streams."""
    cost = usage.get("cost")
    return cost is None or isinstance(cost, dict) or "is_byok" in usage or "cost_details" in usage


def _amount(value: Any, *, free: bool = False) -> Decimal | None:
    """A number of USD or ticks, else None. Many servers write 0 for no figure: only `free` believes it."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    # NaN is in no range.
    if not 0 <= value < _MOST or (value == 0 and not free):
        return None
    return Decimal(repr(value))
