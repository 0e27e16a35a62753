"""Costs by litellm's price map, for calls through litellm that `prices.csv` has no price for.

litellm computes the cost of an answer itself. The most that a request can cost follows from the map: that of
the loaded module, which the program may have extended, else the file that the installed litellm ships.
Reading the file takes some 20 ms once, and importing litellm seconds.
"""

from __future__ import annotations

import functools
import importlib.util
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._runtime.exact_decimal import exact

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from decimal import Decimal

    from .._types.usage import Usage

_FILE = "model_prices_and_context_window_backup.json"

_READING = re.compile(r"(explicit_)?(input_cost_per|cache_(read|creation)_input)_([a-z]+_)?token(_|$).*")
_WRITING = re.compile(r"(output_cost_per_([a-z]+_)?token|citation_cost_per_token).*")
_OTHER_UNITS = re.compile(
    r"(input|output)_(db_unit_)?cost_per_(character|second|video|audio|dbu|pixel|query)(?!_token).*"
)


def litellm_cost(model: str, served: str | None, usage: Usage | None) -> Decimal | None:
    """The USD that litellm computes for an answer; None if it knows no price.

    Args:
        model: The model as litellm was asked for it.
        served: The model that the answer names, which tells the model of a deployment on Azure.
        usage: The usage of the answer.

    >>> litellm_cost("no-such-provider/model", None, None) is None
    True
    """
    litellm: Any = sys.modules.get("litellm")
    if litellm is None or usage is None:
        return None
    try:
        name, provider, *_ = litellm.get_llm_provider(model)
    # litellm raises exceptions of many kinds. The answer is paid for, and must not be lost.
    except Exception:
        return None
    for known in (name, served):
        try:
            costs = litellm.cost_per_token(
                model=known, custom_llm_provider=provider, usage_object=_usage(litellm, usage)
            )
        except Exception:  # noqa: S112  # the next name may have a price
            continue
        if any(cost > 0 for cost in costs):
            return _with_searches(exact().add(*map(_decimal, costs)), usage, prices_of(model))
    return None


def prices_of(model: str) -> Mapping[str, Any] | None:
    """The entry of litellm's map for a model as litellm is asked for it; None if it has none with a price."""
    prices = _loaded_map()
    provider, _, name = model.partition("/")
    entry = prices.get(model)
    if entry is None and name:
        entry = prices.get(name)
        if entry is not None and not str(entry.get("litellm_provider", "")).startswith(provider):
            return None
    # The map also writes 0 for a price that is not known.
    return entry if entry is not None and any(_found(entry, _READING)) else None


def most_cost(entry: Mapping[str, Any], read: int, written: int) -> Decimal | None:
    """The most USD that a request can cost: each token at the highest price of its direction.

    Args:
        entry: The entry of litellm's map for the model.
        read: The most tokens of the prompt.
        written: The most tokens of the answers.

    Returns:
        None if the model is billed in other units too.

    >>> entry = {"input_cost_per_token": 1e-6, "cache_creation_input_token_cost": 2e-6,
    ...          "output_cost_per_token": 4e-6}
    >>> most_cost(entry, 1000, 10)
    Decimal('0.002040')
    """
    if any(_OTHER_UNITS.fullmatch(name) and price for name, price in entry.items()):
        return None
    reading, writing = max(_found(entry, _READING), default=0), max(_found(entry, _WRITING), default=0)
    if written and not writing:
        return None
    tokens = exact().add(
        exact().multiply(_decimal(reading), read), exact().multiply(_decimal(writing), written)
    )
    return exact().add(tokens, _decimal(entry.get("input_cost_per_request") or 0))


def _found(entry: Mapping[str, Any], pattern: re.Pattern[str]) -> Iterator[float]:
    for prices in (entry, *(entry.get("tiered_pricing") or ())):
        for name, price in prices.items():
            if isinstance(price, (int, float)) and pattern.fullmatch(name):
                yield price


def _decimal(number: float) -> Decimal:
    from decimal import Decimal

    return Decimal(repr(number))


def _with_searches(cost: Decimal, usage: Usage, entry: Mapping[str, Any] | None) -> Decimal | None:
    """The cost with that of the searches; None if they have no price."""
    if not usage.web_searches:
        return cost
    prices = ((entry or {}).get("search_context_cost_per_query") or {}).values()
    if not prices:
        return None
    return exact().add(cost, exact().multiply(_decimal(max(prices)), usage.web_searches))


def _usage(litellm: Any, usage: Usage) -> Any:
    return litellm.Usage(
        prompt_tokens=usage.input_tokens,
        completion_tokens=usage.output_tokens,
        total_tokens=usage.total_tokens,
        prompt_tokens_details={
            "cached_tokens": usage.cache_read_input_tokens,
            "audio_tokens": usage.audio_input_tokens,
            "image_tokens": usage.image_input_tokens,
        },
        completion_tokens_details={
            "reasoning_tokens": usage.reasoning_output_tokens,
            "audio_tokens": usage.audio_output_tokens,
        },
        cache_read_input_tokens=usage.cache_read_input_tokens,
        cache_creation_input_tokens=usage.cache_write_input_tokens,
    )


def _loaded_map() -> Mapping[str, Any]:
    litellm = sys.modules.get("litellm")
    found = getattr(litellm, "model_cost", None)
    return found if isinstance(found, dict) and found else _installed_map()


@functools.cache
def _installed_map() -> Mapping[str, Any]:
    spec = importlib.util.find_spec("litellm")
    if spec is None or spec.origin is None:
        return {}
    import orjson

    try:
        found = orjson.loads(Path(spec.origin).with_name(_FILE).read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
