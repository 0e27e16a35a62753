"""Reads the entries of litellm's price map, a JSON file. litellm is not imported."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

from ..._core.money.price_rows import CLOUDS
from ..._core.requests.routing import ROUTES
from ..._core.runtime.files import read_text
from .quotes import Key, PriceList, Quotes, plain, usable

FILE_NAME = "model_prices_and_context_window_backup.json"

_PROVIDERS = {name: route for route in ROUTES.values() for name in route.litellm_names}
"""Route by provider name of the map."""

# The map lists models of these providers without a prefix.
_BARE = frozenset({"anthropic", "bedrock", "openai", "vertex_ai"})
_MODES = frozenset({"chat", "responses", "completion", "embedding"})
# Gemini's models for images and speech are called like its chat models.
_CALLED_LIKE_CHAT = dict.fromkeys(("gemini", "vertex_ai"), frozenset({"image_generation", "audio_speech"}))
# Other ways to write a name that the map has too.
_DOUBLED = re.compile(r"(global|global-standard|invoke|converse)/.*")

_KEY = re.compile(
    r"(?P<price>[a-z_]+?)(?:_above_(?P<hours>12?)hr)?(?:_above_(?P<thousand>\d+)k_tokens)?"
    r"(?:_(?P<variant>batches|flex|priority|ultrafast))?"
)
_COLUMNS = {
    "input_cost_per_token": "input",
    "output_cost_per_token": "output",
    "output_cost_per_reasoning_token": "output_reasoning",
    "cache_read_input_token_cost": "cache_read",
    "cache_creation_input_token_cost": "cache_write",
    "input_cost_per_audio_token": "input_audio",
    "cache_read_input_audio_token_cost": "cache_read_audio",
    "output_cost_per_audio_token": "output_audio",
    "input_cost_per_image_token": "input_image",
    "output_cost_per_image_token": "output_image",
}
_FIREWORKS_PATH = re.compile(r"accounts/fireworks/(models|routers)/")


def read_models(path: Path, today: str) -> dict[Key, Quotes]:
    """The quotes of the models in the map that have not shut down before a day.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is not a price map.
    """
    models: dict[Key, Quotes] = {}
    try:
        entries = read_entries(path)
        for name, entry in entries.items():
            key = key_of(name, entry)
            # The map lists some models of Vertex with the prefix and, with less detail, without.
            if key is None or (name != "/".join(key) and "/".join(key) in entries):
                continue
            if str(entry.get("deprecation_date", today)) >= today:
                models.setdefault(key, quotes_of(key[0], entry))
    except (AttributeError, TypeError, KeyError, ArithmeticError) as error:
        raise ValueError(f"{path} is not litellm's price map as of today: {error}") from None
    if not models:
        raise ValueError(f"{path} is not litellm's price map as of today: it has no models")
    return models


def read_entries(path: Path) -> dict[str, Any]:
    """The entries of a map, with decimals. A list of tiers is written as the other entries write tiers.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is no JSON.
    """
    entries: dict[str, Any] = json.loads(read_text(path), parse_float=Decimal, parse_int=Decimal)
    for entry in entries.values():
        for tier in entry.get("tiered_pricing") or ():
            size = int(tier.get("range", (0,))[0]) // 1000
            suffix = f"_above_{size}k_tokens" if size else ""
            entry |= {f"{name}{suffix}": price for name, price in tier.items() if name != "range"}
    return entries


def key_of(name: str, entry: Mapping[str, Any]) -> Key | None:
    """The provider and model of an entry, named as in `prices.csv`.

    None where the entry is no chat or embedding model of a route of `ROUTES`, or has no price.
    """
    listed = entry.get("litellm_provider", "")
    cloud, route = _cloud_of(listed), _PROVIDERS.get(listed)
    provider = cloud or (route.provider if route else None)
    if provider is None or not entry.get("input_cost_per_token"):
        return None
    if entry.get("mode") not in _MODES | _CALLED_LIKE_CHAT.get(provider, frozenset()):
        return None
    prefix = route.litellm_names[0] if route and not cloud else provider
    model = name.removeprefix(f"{prefix}/")
    if (model == name and provider not in _BARE) or (cloud and _DOUBLED.fullmatch(model)):
        return None
    if provider == "fireworks_ai":
        model = _FIREWORKS_PATH.sub("", model, count=1)
    return provider, model


def _cloud_of(listed: str) -> str | None:
    """The cloud of a provider's name in the map, such as `vertex_ai-anthropic_models`."""
    cloud = {"azure_text": "azure", "bedrock_converse": "bedrock"}.get(listed, listed.partition("-")[0])
    return cloud if cloud in CLOUDS else None


def quotes_of(provider: str, entry: Mapping[str, Any]) -> Quotes:
    """The quotes of an entry, whose numbers are decimals."""
    variants: dict[str, PriceList] = {}
    for name, value in entry.items():
        match = _KEY.fullmatch(name)
        column = _COLUMNS.get(match["price"]) if match else None
        if match is None or column is None or not value:
            continue
        if match["hours"]:
            column = f"cache_write_{match['hours']}h"
        # A tier applies above its limit, which `min_input_tokens` includes. xAI's table says "200k and more".
        limit = int(match["thousand"] or 0) * 1000
        minimum = limit + 1 if limit and provider != "xai" else limit
        variant = {None: "standard", "batches": "batch"}.get(match["variant"], match["variant"])
        variants.setdefault(variant, {}).setdefault(minimum, {})[column] = _per_million(value)
    off_peak = entry.get("off_peak_pricing") or {}
    if off_peak:
        cells = {_COLUMNS[name]: _per_million(value) for name, value in off_peak.items() if name in _COLUMNS}
        variants["off_peak"] = {0: cells}
    searches = (entry.get("search_context_cost_per_query") or {}).values()
    if len(set(searches)) == 1:
        for cells in variants["standard"].values():
            cells["web_search"] = plain(next(iter(searches)) * 1000)
    draws = "output_image" in variants["standard"].get(0, {})
    return {
        variant: {"": {minimum: usable(cells) for minimum, cells in _fill_tiers(tiers).items()}}
        for variant, tiers in variants.items()
        # The map lacks the price of images of some service levels. A blank would price them as text.
        if "input" in tiers.get(0, {}) and (not draws or "output_image" in tiers[0])
    }


def _fill_tiers(tiers: PriceList) -> PriceList:
    """The tiers, each with a price of input. The map may have only the price of sounds of a tier."""
    whole = {size: cells if "input" in cells else {**tiers[0], **cells} for size, cells in tiers.items()}
    return {size: cells for size, cells in whole.items() if not size or cells != tiers[0]}


def _per_million(value: Decimal) -> Decimal:
    return plain(value * 1_000_000)
