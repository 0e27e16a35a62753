"""litellm's price map, read as the JSON file it is: importing litellm takes seconds and asks the network."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import re
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

from .quotes import SNAPSHOT, Key, PriceList, Quotes, Source, plain, usable

FILE_NAME = "model_prices_and_context_window_backup.json"

_PROVIDERS = {
    "anthropic": "anthropic",
    "deepseek": "deepseek",
    "fireworks_ai": "fireworks_ai",
    "fireworks_ai-embedding-models": "fireworks_ai",
    "gemini": "gemini",
    "groq": "groq",
    "mistral": "mistral",
    "openai": "openai",
    "openrouter": "openrouter",
    "sambanova": "sambanova",
    "text-completion-openai": "openai",
    "together_ai": "together_ai",
    "xai": "xai",
}
# The map names these providers' models without a prefix.
_BARE = frozenset({"anthropic", "openai"})
_MODES = frozenset({"chat", "responses", "completion", "embedding"})

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
        raise FileNotFoundError(f"litellm is not installed; give the path of its {FILE_NAME}")
    return Path(found.origin).parent / FILE_NAME


def read(path: Path, today: str) -> Source:
    """Read a price map.

    Left out are prices of 0, which the map also writes for "not known"; models that shut down before
    `today`, with the name of a family none of whose snapshots is left; and models of Fireworks that are not
    on its serverless price list, whose entries are the list prices of their size class.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is not a price map.
    """
    entries = json.loads(path.read_text(encoding="utf-8"), parse_float=Decimal, parse_int=Decimal)
    source = Source(version_name(path))
    for name, entry in entries.items():
        key = key_of(name, entry)
        if key is None:
            continue
        if str(entry.get("deprecation_date", today)) < today:
            source.shut_down.add(key)
        else:
            source.models.setdefault(key, _quotes(key[0], entry))
    for key in list(source.models):
        snapshots = {other for other in (*source.models, *source.shut_down) if _is_snapshot(other, key)}
        if snapshots and snapshots <= source.shut_down:
            source.shut_down.add(key)
    # The map may hold a model twice, with a path before its name and without.
    source.models = {key: quotes for key, quotes in source.models.items() if key not in source.shut_down}
    return source


def version_name(path: Path) -> str:
    """What the `source` column calls a price map."""
    beside = importlib.metadata.distributions(name="litellm", path=[str(path.resolve().parent.parent)])
    return next((f"litellm {found.version}" for found in beside), "litellm")


def key_of(name: str, entry: Mapping[str, Any]) -> Key | None:
    """The provider and model that an entry of the map is for, named as `prices.csv` names them.

    None for what is no chat or embedding model of a direct route, or has no price.
    """
    provider = _PROVIDERS.get(entry.get("litellm_provider", ""))
    if provider is None or entry.get("mode") not in _MODES or not entry.get("input_cost_per_token"):
        return None
    model = name.removeprefix(f"{provider}/")
    if model == name and provider not in _BARE:
        return None
    if provider == "fireworks_ai":
        if entry["mode"] != "embedding" and "serverless" not in str(entry.get("source")):
            return None
        model = _FIREWORKS_PATH.sub("", model, count=1)
    return provider, model


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
        # "Above" excludes the limit itself, except xAI's, whose own table reads "200k and more".
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
    return {
        variant: {"": {minimum: usable(cells) for minimum, cells in tiers.items()}}
        for variant, tiers in variants.items()
        if "input" in tiers.get(0, {})
    }


def _per_million(value: Decimal) -> Decimal:
    return plain(value * 1_000_000)
