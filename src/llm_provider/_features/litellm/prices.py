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
from ..._core.money.price_rows import PRICE_COLUMNS, VARIANTS, PriceRow
from ..._core.money.pricing import PriceTable
from ..._core.runtime.exact_decimal import exact, total, without_noise

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
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
    "cache_write_12h": "cache_creation_input_token_cost_above_12hr",
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

_NAMES = ("litellm", "model")
"""The provider and the model of the rows of an entry."""

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

    `served`, the model that the answer names, tells the model of a deployment on Azure. Without a loaded
    litellm only models that are billed by the token have a cost.
    """
    litellm: Any = sys.modules.get("litellm")
    if usage is None or usage.unpriced_tools:
        return None
    if litellm is None:
        return PriceTable(list_rows(model)).cost(*_NAMES, usage, variant=tier)
    try:
        name, provider, *_ = litellm.get_llm_provider(model)
    # litellm raises exceptions of many kinds. The answer is paid for, and must not be lost.
    except Exception:
        return None
    own = {"custom_llm_provider": provider, "service_tier": None if tier == "standard" else tier}
    for known in (name, served):
        entry = prices_of(model if known == name else f"{provider}/{known}")
        if entry is not None and _is_plain(entry):
            return PriceTable(_rows_of(entry)).cost(*_NAMES, usage, variant=tier)
        try:
            costs = litellm.cost_per_token(model=known, usage_object=_usage(litellm, usage), **own)
        except Exception:  # noqa: S112  # the next name may have a price
            continue
        if any(cost > 0 for cost in costs):
            from decimal import Decimal

            cost = exact().add(*(Decimal(repr(cost)) for cost in costs))
            if not usage.web_searches:
                return cost
            prices = ((prices_of(model) or {}).get("search_context_cost_per_query") or {}).values()
            each = _decimal(max(prices)) if prices else None
            return None if each is None else exact().add(cost, exact().multiply(each, usage.web_searches))
    return None


def _is_plain(entry: _Entry) -> bool:
    """Whether a model is billed by the token alone, at all times. The whole prompt may choose a tier."""
    tiers = entry.get("tiered_pricing") or ()
    return all(tier.get("range") and tier.get("input_cost_per_token") for tier in tiers) and not any(
        "off_peak" in name or _OTHER_UNITS.fullmatch(name)
        for each in (entry, *tiers)
        for name, price in each.items()
        if price
    )


def list_rows(model: str) -> list[PriceRow]:
    """The rows of a model by litellm's map, at every service level; none if it is not billed by the token."""
    entry = prices_of(model)
    return [] if entry is None or not _is_plain(entry) else list(_rows_of(entry))


def _rows_of(entry: _Entry) -> Iterator[PriceRow]:
    sizes = {0, *(int(match[1]) for name in entry if (match := _LARGE_PROMPT.search(name)))}
    searches = (entry.get("search_context_cost_per_query") or {}).values()
    fees: dict[str, Any] = {
        "web_search": exact().scaleb(_decimal(max(searches)), 3) if searches else None,
        "request": exact().scaleb(_decimal(entry.get("input_cost_per_request") or 0), 3),
    }

    def row(variant: str, size: int, listed: _Entry, ends: Sequence[str]) -> PriceRow:
        """A row for prompts above a size. Of several names of a price the first one counts."""
        prices: dict[str, Any] = {}
        for column, base in _BASES.items():
            known = next((listed[base + end] for end in ends if listed.get(base + end) is not None), None)
            prices[column] = None if known is None else exact().scaleb(_decimal(known), 6)
        for column, other in _OTHERWISE:
            prices[column] = prices[other] if prices[column] is None else prices[column]
        amounts = [(prices | fees).get(column) for column in PRICE_COLUMNS]
        return PriceRow._make((*_NAMES, variant, size + 1 if size else 0, *amounts, "", "litellm", ""))

    for tier in entry.get("tiered_pricing") or ():
        written = {"output_cost_per_token": entry.get("output_cost_per_token")}
        yield row("standard", int(tier["range"][0]), written | tier, ("",))
    for variant in () if entry.get("tiered_pricing") else sorted(VARIANTS):
        suffix = _SUFFIXES.get(variant, f"_{variant}")
        for size in sizes if f"input_cost_per_token{suffix}" in entry else ():
            above = [f"_above_{each}k_tokens" for each in sorted(sizes, reverse=True) if 0 < each <= size]
            ends = [*(each + end for each in above for end in (suffix, "")), suffix, ""]
            yield row(variant, 1000 * size, entry, ends)


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

    return without_noise(Decimal(repr(number)))


def _usage(litellm: Any, usage: Usage) -> object:
    hour, half_day = usage.cache_write_1h_input_tokens, usage.cache_write_12h_input_tokens
    lifetimes = {
        "ephemeral_5m_input_tokens": usage.cache_write_input_tokens - hour - half_day,
        "ephemeral_1h_input_tokens": hour,
        "ephemeral_12h_input_tokens": half_day,
    }
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
        cache_creation_input_tokens=usage.cache_write_input_tokens,
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
