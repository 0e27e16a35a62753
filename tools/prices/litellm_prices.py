"""Reads litellm's price map as a JSON file, since importing litellm takes seconds and uses the network."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import re
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

from llm_provider._core.money.price_rows import CLOUDS
from llm_provider._core.requests.routing import ROUTES
from llm_provider._features.clouds.price_names import ZONES

from .quotes import SNAPSHOT, Key, PriceList, Quotes, Source, plain, usable

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
    r"(?P<price>[a-z_]+?)(?P<hour>_above_1hr)?(?:_above_(?P<thousand>\d+)k_tokens)?"
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


def installed_file() -> Path:
    """The price map of the installed litellm.

    Raises:
        FileNotFoundError: litellm is not installed.
    """
    found = importlib.util.find_spec("litellm")
    if found is None or found.origin is None:
        raise FileNotFoundError(f"litellm is not installed; give the path of its {FILE_NAME} with --litellm")
    return Path(found.origin).parent / FILE_NAME


def read(path: Path, today: str) -> Source:
    """Read a price map.

    Two kinds of entries are left out:

    - prices of 0, which the map also writes for an unknown price;
    - models that shut down before `today`, and a family's name once all its snapshots have shut down.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file is not a price map.
    """
    entries = json.loads(path.read_text(encoding="utf-8"), parse_float=Decimal, parse_int=Decimal)
    source = Source(version_name(path))
    for name, entry in entries.items():
        key = key_of(name, entry)
        # The map lists some models of Vertex with the prefix and, with less detail, without.
        if key is None or (name != "/".join(key) and "/".join(key) in entries):
            continue
        if str(entry.get("deprecation_date", today)) < today:
            source.shut_down.add(key)
        else:
            quotes = source.models.setdefault(key, _quotes(key[0], entry))
            uplift = entry.get("regional_endpoint_uplift_multiplier")
            if uplift:
                source.models.setdefault((key[0], f"regional/{key[1]}"), _scale(quotes, uplift))
    for key in list(source.models):
        snapshots = {other for other in (*source.models, *source.shut_down) if _is_snapshot(other, key)}
        if snapshots and snapshots <= source.shut_down:
            source.shut_down.add(key)
    # The map may hold a model twice, with a path before its name and without. Only one of them has shut
    # down.
    source.models = {key: quotes for key, quotes in source.models.items() if key not in source.shut_down}
    source.models |= _find_regional(source.models)
    return source


def version_name(path: Path) -> str:
    """The map's name in the `source` column, with the version of the litellm that it belongs to."""
    beside = importlib.metadata.distributions(name="litellm", path=[str(path.resolve().parent.parent)])
    return next((f"litellm {found.version}" for found in beside), "litellm")


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


def _scale(quotes: Quotes, factor: Decimal) -> Quotes:
    """The prices of tokens times a factor. Searches cost the same everywhere."""
    return {
        variant: {
            day: {
                minimum: {
                    column: price if column == "web_search" else plain(price * factor)
                    for column, price in cells.items()
                }
                for minimum, cells in tiers.items()
            }
            for day, tiers in days.items()
        }
        for variant, days in quotes.items()
    }


def _find_regional(models: Mapping[Key, Quotes]) -> dict[Key, Quotes]:
    """The prices that most zones, or profiles, of a model share. The others have rows of their own."""
    zoned: dict[Key, list[Quotes]] = {}
    for (provider, model), quotes in models.items():
        zone = next(filter(model.startswith, ZONES.get(provider, ())), None)
        if zone is not None:
            zoned.setdefault((provider, f"regional{zone[-1]}{model.removeprefix(zone)}"), []).append(quotes)
    usual = {key: max(lists, key=lists.count) for key, lists in zoned.items() if len(lists) > 1}
    return {key: quotes for key, quotes in usual.items() if 2 * zoned[key].count(quotes) > len(zoned[key])}


def _is_snapshot(other: Key, family: Key) -> bool:
    return (
        other[0] == family[0]
        and other[1].startswith(family[1])
        and SNAPSHOT.fullmatch(other[1], len(family[1])) is not None
    )


def _quotes(provider: str, entry: Mapping[str, Any]) -> Quotes:
    variants: dict[str, PriceList] = {}
    for name, value in entry.items():
        found = _KEY.fullmatch(name)
        column = _COLUMNS.get(found["price"]) if found else None
        if found is None or column is None or not value:
            continue
        if found["hour"]:
            column = "cache_write_1h"
        # A tier applies above its limit, which `min_input_tokens` includes. xAI's table says "200k and more".
        limit = int(found["thousand"] or 0) * 1000
        minimum = limit + 1 if limit and provider != "xai" else limit
        variant = {None: "standard", "batches": "batch"}.get(found["variant"], found["variant"])
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
