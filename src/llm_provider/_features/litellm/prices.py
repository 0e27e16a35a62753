"""Costs by litellm's price map, for calls through litellm that `prices.csv` has no price for.

The map comes from the loaded module, which the program may have extended, else the file that the installed
litellm ships. Reading the file takes some 20 ms once, and importing litellm seconds. A model that the map
prices by the token becomes a row of prices, with the rows of its service level and of its prompt size. The
others, such as those with prices by the second, litellm computes itself.
"""

from __future__ import annotations

import functools
import importlib.util
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from ..._core.json_values import JSONMapping
from ..._core.money.price_rows import PriceRow
from ..._core.money.pricing import PriceTable
from ..._core.runtime.exact_decimal import exact, total

if TYPE_CHECKING:
    from collections.abc import Iterator
    from decimal import Decimal

    from ..._core.types.usage import Usage

_Entry: TypeAlias = "JSONMapping"
"""What the map has about a model."""

_FILE = "model_prices_and_context_window_backup.json"

_BASES = {
    "input": "input_cost_per_token",
    "cache_read": "cache_read_input_token_cost",
    "cache_write": "cache_creation_input_token_cost",
    "cache_write_1h": "cache_creation_input_token_cost_above_1hr",
    "output": "output_cost_per_token",
    "output_reasoning": "output_cost_per_reasoning_token",
    "input_audio": "input_cost_per_audio_token",
    "cache_read_audio": "cache_read_input_audio_token_cost",
    "output_audio": "output_cost_per_audio_token",
    "input_image": "input_cost_per_image_token",
    "output_image": "output_cost_per_image_token",
}
"""The names in the map of the prices of our columns, without suffixes."""
_OTHERWISE = (("cache_read", "input"), ("cache_write", "input"), ("cache_write_1h", "cache_write"))
"""Columns, and those whose price is theirs where the map has none."""

_LARGE_PROMPT = re.compile(r"_above_(\d+)k_tokens")
_SUFFIXES = {"standard": "", "batch": "_batches"}

_READING = re.compile(r"(explicit_)?(input_cost_per|cache_(read|creation)_input)_([a-z]+_)?token(_|$).*")
_WRITING = re.compile(r"(output_cost_per_([a-z]+_)?token|citation_cost_per_token).*")
_OTHER_UNITS = re.compile(
    r"(input|output)_(db_unit_)?cost_per_(character|second|video|audio|dbu|pixel|query)(?!_token).*"
)


def litellm_cost(
    model: str, served: str | None, usage: Usage | None, tier: str = "standard"
) -> Decimal | None:
    """The USD of an answer by litellm's price map, with a tier of `prices.csv`; None if it has no price.

    `served`, the model that the answer names, tells the model of a deployment on Azure.
    """
    litellm: Any = sys.modules.get("litellm")
    if litellm is None or usage is None or usage.unpriced_tools:
        return None
    try:
        name, provider, *_ = litellm.get_llm_provider(model)
    # litellm raises exceptions of many kinds. The answer is paid for, and must not be lost.
    except Exception:
        return None
    own = {"custom_llm_provider": provider, "service_tier": None if tier == "standard" else tier}
    for known in (name, served):
        entry = prices_of(model if known == name else f"{provider}/{known}")
        if entry is not None and _is_plain(entry):
            return _by_token(entry, usage, tier)
        try:
            costs = litellm.cost_per_token(model=known, usage_object=_usage(litellm, usage), **own)
        except Exception:  # noqa: S112  # the next name may have a price
            continue
        if any(cost > 0 for cost in costs):
            cost = exact().add(*map(_decimal, costs))
            if not usage.web_searches:
                return cost
            prices = ((prices_of(model) or {}).get("search_context_cost_per_query") or {}).values()
            each = _decimal(max(prices)) if prices else None
            return None if each is None else exact().add(cost, exact().multiply(each, usage.web_searches))
    return None


def _is_plain(entry: _Entry) -> bool:
    """Whether a model is billed by the token alone, at all times."""
    return not entry.get("tiered_pricing") and not any(
        "off_peak" in name or _OTHER_UNITS.fullmatch(name) for name, price in entry.items() if price
    )


def _by_token(entry: _Entry, usage: Usage, tier: str) -> Decimal | None:
    """The cost by the prices of a service level; None if the map does not have them."""
    suffix = _SUFFIXES.get(tier, f"_{tier}")
    if f"input_cost_per_token{suffix}" not in entry:
        return None
    sizes = {int(match[1]) for name in entry if (match := _LARGE_PROMPT.search(name))}
    reached = (size for size in sorted(sizes, reverse=True) if usage.input_tokens > 1000 * size)
    above = [f"_above_{size}k_tokens" for size in reached]

    def price(base: str) -> Decimal | None:
        names = [base + size + end for size in above for end in (suffix, "")] + [base + suffix, base]
        known = next((entry[name] for name in names if entry.get(name) is not None), None)
        return None if known is None else exact().scaleb(_decimal(known), 6)

    prices = {column: price(base) for column, base in _BASES.items()}
    for column, other in _OTHERWISE:
        prices[column] = prices[other] if prices[column] is None else prices[column]
    searches = (entry.get("search_context_cost_per_query") or {}).values()
    prices["web_search"] = exact().scaleb(_decimal(max(searches)), 3) if searches else None
    prices["request"] = exact().scaleb(_decimal(entry.get("input_cost_per_request") or 0), 3)
    row = PriceRow("litellm", "model", "standard", 0, **prices, effective_from="", source="litellm", as_of="")
    return PriceTable((row,)).cost("litellm", "model", usage)


def prices_of(model: str) -> _Entry | None:
    """The entry of litellm's map for a model as litellm is asked for it; None if it has none with a price."""
    loaded = getattr(sys.modules.get("litellm"), "model_cost", None)
    prices = loaded if isinstance(loaded, dict) and loaded else _read_map()
    provider, _, name = model.partition("/")
    entry = prices.get(model)
    if entry is None and name:
        entry = prices.get(name)
        if entry is not None and not str(entry.get("litellm_provider", "")).startswith(provider):
            return None
    # The map also writes 0 for a price that is not known.
    return entry if entry is not None and any(_prices(entry, _READING)) else None


def most_cost(entry: _Entry, read: int, written: int) -> Decimal | None:
    """The most USD that so many tokens can cost, each at its highest price; None with other units."""
    if any(_OTHER_UNITS.fullmatch(name) and price for name, price in entry.items()):
        return None
    reading, writing = max(_prices(entry, _READING), default=0), max(_prices(entry, _WRITING), default=0)
    if written and not writing:
        return None
    multiply, base = exact().multiply, _decimal(entry.get("input_cost_per_request") or 0)
    return total([base, multiply(_decimal(reading), read), multiply(_decimal(writing), written)])


def _prices(entry: _Entry, pattern: re.Pattern[str]) -> Iterator[float]:
    for prices in (entry, *(entry.get("tiered_pricing") or ())):
        for name, price in prices.items():
            if isinstance(price, (int, float)) and pattern.fullmatch(name):
                yield price


def _decimal(number: float) -> Decimal:
    from decimal import Decimal

    return Decimal(repr(number))


def _usage(litellm: Any, usage: Usage) -> object:
    written, long = usage.cache_write_input_tokens, usage.cache_write_1h_input_tokens
    lifetimes = {"ephemeral_5m_input_tokens": written - long, "ephemeral_1h_input_tokens": long}
    return litellm.Usage(
        prompt_tokens=usage.input_tokens,
        completion_tokens=usage.output_tokens,
        total_tokens=usage.total_tokens,
        prompt_tokens_details={
            "cached_tokens": usage.cache_read_input_tokens,
            "audio_tokens": usage.audio_input_tokens,
            "image_tokens": usage.image_input_tokens,
            "cache_creation_token_details": lifetimes,
        },
        completion_tokens_details={
            "reasoning_tokens": usage.reasoning_output_tokens,
            "audio_tokens": usage.audio_output_tokens,
            "image_tokens": usage.image_output_tokens,
        },
        cache_read_input_tokens=usage.cache_read_input_tokens,
        cache_creation_input_tokens=written,
    )


@functools.cache
def _read_map() -> _Entry:
    spec = importlib.util.find_spec("litellm")
    if spec is None or spec.origin is None:
        return {}
    import orjson

    try:
        prices = orjson.loads(Path(spec.origin).with_name(_FILE).read_bytes())
    except (OSError, ValueError):
        return {}
    return prices if isinstance(prices, dict) else {}
