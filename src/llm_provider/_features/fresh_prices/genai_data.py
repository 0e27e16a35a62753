"""Reads the models of genai-prices out of its data file, whose code is not run."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ..._core.money.price_rows import CLOUDS
from ..._core.requests.routing import ROUTES
from ..._core.runtime.files import read_text
from .quotes import SNAPSHOT, Key, PriceList, Quotes, plain, usable

AT_CLOUDS = {"aws": ("bedrock", "bedrock_mantle"), "azure": ("azure", "azure_ai"), "google": ("vertex_ai",)}
PROVIDERS = {
    name: tuple(
        provider
        for provider, route in ROUTES.items()
        if name == route.genai_prices_name and provider not in CLOUDS
    )
    + AT_CLOUDS.get(name, ())
    for name in [*(route.genai_prices_name for route in ROUTES.values()), *AT_CLOUDS]
    if name
}
"""Providers of `prices.csv` by provider name of genai-prices."""

_COLUMNS = {
    "input_mtok": "input", "output_mtok": "output", "output_reasoning_mtok": "output_reasoning",
    "cache_read_mtok": "cache_read", "cache_write_mtok": "cache_write",
    "cache_write_1h_mtok": "cache_write_1h",
    "input_audio_mtok": "input_audio", "cache_audio_read_mtok": "cache_read_audio",
    "output_audio_mtok": "output_audio", "input_image_mtok": "input_image",
    "output_image_mtok": "output_image", "web_searches_kcount": "web_search", "requests_kcount": "request",
}  # fmt: skip
_VARIANTS = {
    ("processing", "batch"): "batch", ("service_tier", "flex"): "flex",
    ("service_tier", "priority"): "priority", ("service_tier", "fast"): "fast", ("speed", "fast"): "fast",
}  # fmt: skip
# Models that are billed by the token but neither chat nor embed.
_OTHER_KINDS = re.compile(r"transcribe|whisper|tts|realtime|live|image|moderation|ocr|voice")
# The package lists models of Vertex under Google, where other companies' models have other prices. OpenAI
# does not serve its own open models.
_OWN_NAMES = {
    "gemini": re.compile(r"gemini-"),
    "openai": re.compile(r"(?!gpt-oss-)"),
    # Its names of Azure's models are other hosts' names.
    **dict.fromkeys(AT_CLOUDS["azure"], re.compile("(?!)")),
    # Mantle serves other models than Bedrock, and the package does not say which.
    "bedrock_mantle": re.compile("(?!)"),
}
_MODEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+-]*")


def read_models(path: Path) -> dict[Key, Quotes]:
    """The quotes of the models in the data file, each under its whole names at every provider.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is not the data file.
    """
    models: dict[Key, Quotes] = {}
    try:
        for statement in ast.parse(read_text(path)).body:
            if isinstance(statement, ast.AnnAssign) and getattr(statement.target, "id", "") == "providers":
                for group in _build(statement.value):
                    for provider in PROVIDERS.get(group.id, ()):
                        for model in group.models:
                            add_model(models, provider, model)
    except (SyntaxError, AttributeError, TypeError, ArithmeticError, RecursionError) as error:
        raise ValueError(f"{path} is not the data of genai-prices as of today: {error}") from None
    if not models:
        raise ValueError(f"{path} is not the data of genai-prices as of today: it has no models")
    return models


def add_model(models: dict[Key, Quotes], provider: str, model: Any) -> None:
    """Add a model, unless it is deprecated, under the names by which a provider is called."""
    quotes = quotes_of(provider, model)
    names = spellings(model) if provider == "bedrock" else set(whole_names(model.match))
    if quotes and model.id.lower() in names and not getattr(model, "deprecated", False):
        for name in list_names(provider, model.id, names):
            models.setdefault((provider, name), quotes)


def _build(node: Any) -> Any:
    """The value of an expression that calls classes with constants; an object for each call."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, (ast.List, ast.Tuple)):
        return [_build(each) for each in node.elts]
    if isinstance(node, ast.Dict):
        return {_build(key): _build(value) for key, value in zip(node.keys, node.values, strict=True)}
    if not isinstance(node, ast.Call):
        return None
    name = getattr(node.func, "id", None) or getattr(node.func, "attr", "")
    if name == "Decimal":
        return Decimal(_build(node.args[0]))
    if name == "date":
        return date(*map(_build, node.args))
    return SimpleNamespace(**{str(each.arg): _build(each.value) for each in node.keywords})


def spellings(model: Any) -> set[str]:
    """Every whole name of a model, in lower case."""
    return {*whole_names(model.match), model.id.lower()}


def whole_names(match: Any) -> Iterator[str]:
    # Claude's names on Vertex may follow a path.
    whole = getattr(match, "equals", None) or getattr(match, "ends_with", "")
    if whole and not whole.startswith("/"):
        yield whole.lower()
    for clause in getattr(match, "or_", ()):
        yield from whole_names(clause)


def list_names(provider: str, name: str, names: set[str]) -> Iterator[str]:
    """The names of a model that a call can use, without its dated snapshots."""
    if provider == "openrouter":
        # OpenRouter's other names of a model are routes of their own, such as the "-pro" of a model.
        others = {
            other for other in names if not other.endswith(":beta") and not SNAPSHOT.search(other, len(name))
        }
        yield from sorted(other for other in {name, *others} if "/" in other and _MODEL.fullmatch(other))
    elif ":" not in name and _MODEL.fullmatch(name) and not _OTHER_KINDS.search(name):
        own = _OWN_NAMES.get(provider)
        yield from [name] if own is None or own.match(name) else []


def quotes_of(provider: str, model: Any) -> Quotes:
    """The quotes of a model, whose names in `prices.csv` are at a provider."""
    dated: dict[str, PriceList] = {}
    peak: PriceList = {}
    conditions = model.prices if isinstance(model.prices, list) else [None]
    for condition in conditions:
        prices = model.prices if condition is None else condition.prices
        constraint = getattr(condition, "constraint", None)
        if hasattr(constraint, "start_time"):
            peak = _price_list(prices)
        else:
            dated[str(getattr(constraint, "start_date", ""))] = _price_list(prices)
    dated = {day: tiers for day, tiers in dated.items() if "input" in tiers[0]}
    quotes: Quotes = {}
    if not dated:
        return quotes
    if peak:
        # Peak hours have no date of their own. They belong to the newest list.
        newest = max(dated)
        quotes["off_peak"] = {newest: dated[newest]}
        dated[newest] = peak
    quotes["standard"] = dated
    for variant in getattr(model, "price_variants", None) or ():
        name = _VARIANTS.get(next(iter(variant.when.items()))) if len(variant.when) == 1 else None
        tiers = _price_list(variant.prices)
        if name is not None and "input" in tiers[0]:
            day = str(getattr(getattr(variant, "constraint", None), "start_date", ""))
            quotes.setdefault(name, {}).setdefault(day, tiers)
    return quotes


def _price_list(prices: Any) -> PriceList:
    tiers: PriceList = {0: {}}
    for name, value in prices.__dict__.items():
        column = _COLUMNS.get(name)
        if column is None or value is None:
            continue
        tiers[0][column] = getattr(value, "base", value)
        for tier in getattr(value, "tiers", ()):
            # The package's tier applies above its start, which `min_input_tokens` includes.
            tiers.setdefault(tier.start + 1, {})[column] = tier.price
    # A token class without tiers costs the same in every tier.
    return {
        minimum: {column: plain(price) for column, price in usable({**tiers[0], **cells}).items() if price}
        for minimum, cells in sorted(tiers.items())
    }
