"""What a reply tells about its bill beyond tokens: the tools that the provider ran, and its own cost.

OpenAI bills the web searches of Responses by action, and one search for each request to a search model of
Chat Completions. Gemini 3 and later bill each search query, earlier ones each prompt that was grounded. These
hosts report the cost of a request in USD, in the usage of their replies:

| host | field |
|---|---|
| OpenRouter | `cost`; with a key of your own (`is_byok`) also `cost_details.upstream_inference_cost` |
| xAI | `cost_in_usd_ticks`: 10,000,000,000 are a dollar |
| Perplexity | `cost.total_cost` |
| DeepInfra | `estimated_cost` |
| litellm's proxy | `cost` in streams, else the header `x-litellm-response-cost` |
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...json_values import JSONMapping, JSONObject
from ...runtime.exact_decimal import exact
from .replies import count, part

if TYPE_CHECKING:
    from decimal import Decimal

    from ...types.usage import Usage

_TICK = -10
"""The power of ten in USD of xAI's unit."""

_MOST = 10**15

_COSTS = frozenset({"cost", "cost_in_usd_ticks", "estimated_cost"})

_UNPRICED = ("code_interpreter_call", "file_search_call", "image_generation_call")

# The fields of a chat completion's usage, and of its message, that tell of tools.
_TOOL_COUNTS = frozenset({"num_sources_used", "server_tool_use", "num_search_queries", "iterations"})
_TOOL_FIELDS = frozenset({"executed_tools", "provider_specific_fields"})

_SEARCH_MODEL = re.compile(r"-search-(preview|api)\b")
_BILLED_BY_PROMPT = re.compile(r"(models/)?gemini-[12]\b")


def with_tools(usage: Usage, searches: int, unpriced: int) -> Usage:
    """A usage with some more searches and uses of other tools; the usage itself if there are none."""
    if not (searches or unpriced):
        return usage
    return replace(
        usage, web_searches=usage.web_searches + searches, unpriced_tools=usage.unpriced_tools + unpriced
    )


def chat_tools(reply: JSONMapping, usage: JSONMapping) -> tuple[int, int]:
    """The searches of a chat completion, and its uses of tools without a known price.

    Groq bills code by the time that it runs, and xAI the sources that a search used. litellm shows the
    containers of Anthropic's models, and the maps of Gemini's.
    """
    details = usage.get("prompt_tokens_details")
    try:
        # As most answers are: without a sign of a tool.
        if (
            _TOOL_COUNTS.isdisjoint(usage)
            and _TOOL_FIELDS.isdisjoint(reply["choices"][0]["message"])
            and "search" not in reply["model"]
            and not (details and any(details.values()))
        ):
            return 0, 0
    except (AttributeError, KeyError, IndexError, TypeError):
        pass
    message = _message(reply)
    unpriced = count(usage, "num_sources_used") + _count_other_models(usage)
    if "executed_tools" in message:
        unpriced += sum(not _is_search(tool) for tool in _dicts(message["executed_tools"]))
    if "provider_specific_fields" in message:
        unpriced += isinstance(part(message, "provider_specific_fields").get("container"), dict)
    if isinstance(details, dict) and "google_maps_grounding_requests" in details:
        unpriced += count(details, "google_maps_grounding_requests")
    return _chat_searches(reply, usage, message, details), unpriced


def _chat_searches(reply: JSONMapping, usage: JSONMapping, message: JSONMapping, details: Any) -> int:
    if "server_tool_use" in usage:  # OpenRouter, and litellm for Anthropic's models
        return count(part(usage, "server_tool_use"), "web_search_requests")
    if "num_search_queries" in usage:  # Perplexity
        return count(usage, "num_search_queries")
    if message.get("executed_tools"):  # Groq
        return sum(map(_is_search, _dicts(message["executed_tools"])))
    model = reply.get("model")
    if isinstance(details, dict) and "web_search_requests" in details:  # litellm for Gemini's models
        searches = count(details, "web_search_requests")
        if searches:
            return min(searches, 1) if _BILLED_BY_PROMPT.match(str(model)) else searches
    return int(isinstance(model, str) and "search" in model and _SEARCH_MODEL.search(model) is not None)


def response_searches(items: Any) -> int:
    """The searches among the output items of a response. Opening a page of a result is free."""
    return sum(
        part(item, "action").get("type", "search") == "search"
        for item in _dicts(items)
        if item.get("type") == "web_search_call" and item.get("status") != "failed"
    )


def response_tools(items: Any) -> int:
    """The items of a response that used a tool without a known price.

    A container is billed by the session, its size and its time, and one container may serve many responses.
    An image is billed by the tokens of its own model, and a file search by hosts at prices of their own.
    """
    return sum(
        item.get("type") in _UNPRICED or part(item, "environment").get("type") == "container_reference"
        for item in _dicts(items)
    )


def anthropic_tools(reply: JSONMapping, usage: JSONMapping) -> int:
    """What an Anthropic message has used without a known price: runs of code, and other models.

    Code is billed by the time of its container, and is free beside searches that it makes itself.
    """
    return _count_runs(reply, usage) + _count_other_models(usage)


def list_iterations(usage: JSONMapping) -> Iterable[JSONObject]:
    """What Claude did for an answer, each with its tokens; most answers do not tell it."""
    return _dicts(usage.get("iterations"))


def _count_other_models(usage: JSONMapping) -> int:
    """The iterations of advisors, and of models that declined before the one that answered."""
    if "iterations" not in usage:
        return 0
    entries = list(list_iterations(usage))
    served = next((entry.get("model") for entry in entries if entry.get("type") == "fallback_message"), None)
    return sum(
        entry.get("type") == "advisor_message" or served not in (None, entry.get("model") or served)
        for entry in entries
    )


def _count_runs(reply: JSONMapping, usage: JSONMapping) -> int:
    content = reply.get("content")
    runs = count(part(usage, "server_tool_use"), "code_execution_requests")
    if not (runs or reply.get("container")) and _is_one_text(content):
        return 0
    blocks = [block for block in _dicts(content) if block.get("type") == "server_tool_use"]
    if any(str(part(block, "caller").get("type")).startswith("code_execution") for block in blocks):
        return 0
    runs = max(runs, sum("code_execution" in str(block.get("name")) for block in blocks))
    # A container with files is billed without a run too.
    return runs or int(isinstance(reply.get("container"), dict))


def gemini_tools(reply: JSONMapping) -> tuple[int, int]:
    """The billed searches of a Gemini reply, and the candidates that Google Maps grounded.

    Code, pages and stored files are billed as tokens.
    """
    queries = maps = 0
    for candidate in _dicts(reply.get("candidates")):
        if "groundingMetadata" not in candidate:
            continue
        grounding = part(candidate, "groundingMetadata")
        for name in ("webSearchQueries", "imageSearchQueries"):
            searched = grounding.get(name)
            queries += sum(map(bool, searched)) if isinstance(searched, list) else 0
        maps += bool(grounding.get("googleMapsWidgetContextToken")) or any(
            chunk.get("maps") is not None for chunk in _dicts(grounding.get("groundingChunks"))
        )
    if queries > 1 and _BILLED_BY_PROMPT.match(str(reply.get("modelVersion"))):
        queries = 1
    return queries, maps


def cost_in(usage: Any) -> Decimal | None:
    """The USD that a usage object says the request cost; None if it says none."""
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


def cost_in_headers(headers: Mapping[str, str]) -> Decimal | None:
    """The USD that litellm's proxy says a whole answer cost; None if it does not know, and writes 0."""
    text = headers.get("x-litellm-response-cost") or headers.get("llm_provider-x-litellm-response-cost")
    try:
        return None if text is None else _amount(float(text))
    except ValueError:
        return None


def is_own_cost(usage: JSONMapping) -> bool:
    """Whether the cost of a usage is the provider's. litellm adds its own, a plain `cost`, to streams."""
    cost = usage.get("cost")
    return cost is None or isinstance(cost, dict) or "is_byok" in usage or "cost_details" in usage


def without_cost(usage: Any) -> Any:
    """A usage object without its cost, which belongs to the request and not to each of its texts."""
    if not isinstance(usage, dict):
        return usage
    return {name: value for name, value in usage.items() if "cost" not in name}


def _amount(value: Any, *, free: bool = False) -> Decimal | None:
    """A number of USD or ticks, else None. Many servers write 0 for no figure: only `free` believes it."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    # NaN is in no range.
    if not 0 <= value < _MOST or (value == 0 and not free):
        return None
    from decimal import Decimal

    return Decimal(repr(value))


def _message(reply: JSONMapping) -> JSONMapping:
    choices = reply.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return part(first, "message") if isinstance(first, dict) else {}


def _is_one_text(content: Any) -> bool:
    """Whether a message is one block of text, as most are."""
    if type(content) is not list or len(content) != 1:
        return False
    (block,) = content
    return type(block) is dict and block.get("type") == "text"


def _is_search(tool: JSONMapping) -> bool:
    return str(tool.get("type")).endswith("search")


def _dicts(items: Any) -> Iterable[JSONObject]:
    return (item for item in items if isinstance(item, dict)) if isinstance(items, list) else ()
