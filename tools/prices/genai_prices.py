"""Reads the prices of the genai-prices package."""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Iterator
from typing import Any

from llm_provider._core.money.price_rows import CLOUDS
from llm_provider._core.requests.routing import ROUTES

from .quotes import SNAPSHOT, Key, PriceList, Quotes, Source, plain, usable

_CLOUDS = {
    "aws": ("bedrock", "bedrock_mantle"),
    "azure": ("azure", "azure_ai"),
    "google": ("vertex_ai",),
}
_PROVIDERS = {
    name: tuple(
        provider
        for provider, route in ROUTES.items()
        if name == route.genai_prices_name and provider not in CLOUDS
    )
    + _CLOUDS.get(name, ())
    for name in [*(route.genai_prices_name for route in ROUTES.values()), *_CLOUDS]
    if name
}
"""Providers of `prices.csv` by provider name of genai-prices."""

_COLUMNS = {
    "input_mtok": "input",
    "output_mtok": "output",
    "output_reasoning_mtok": "output_reasoning",
    "cache_read_mtok": "cache_read",
    "cache_write_mtok": "cache_write",
    "cache_write_1h_mtok": "cache_write_1h",
    "input_audio_mtok": "input_audio",
    "cache_audio_read_mtok": "cache_read_audio",
    "output_audio_mtok": "output_audio",
    "input_image_mtok": "input_image",
    "output_image_mtok": "output_image",
    "web_searches_kcount": "web_search",
    "requests_kcount": "request",
}
_VARIANTS = {
    ("processing", "batch"): "batch",
    ("service_tier", "flex"): "flex",
    ("service_tier", "priority"): "priority",
    ("service_tier", "fast"): "fast",
    ("speed", "fast"): "fast",
}
# Models that are billed by the token but neither chat nor embed.
_OTHER_KINDS = re.compile(r"transcribe|whisper|tts|realtime|live|image|moderation|ocr|voice")
# The package lists models of Vertex under Google, where other companies' models have other prices. OpenAI
# does not serve its own open models.
_OWN_NAMES = {
    "gemini": re.compile(r"gemini-"),
    "openai": re.compile(r"(?!gpt-oss-)"),
    # Its names of Azure's models are those of other hosts.
    **dict.fromkeys(_CLOUDS["azure"], re.compile("(?!)")),
    # Mantle serves other models than Bedrock, and the package does not say which.
    "bedrock_mantle": re.compile("(?!)"),
}
_MISSING = "genai-prices is not installed; it is a development dependency: pip install genai-prices"
_MODEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+-]*")


def read() -> Source:
    """Read the data of the installed package.

    A model counts under its whole names only: the package's prefixes and patterns also match models that do
    not exist. They only price the names of Bedrock that another source has. Deprecated models and prices of 0
    are left out.

    Raises:
        ModuleNotFoundError: genai-prices is not installed.
    """
    source = Source(version_name())
    for provider, model in listed():
        quotes = _quotes(provider, model)
        if not quotes:
            continue
        for name in spellings(model):
            source.spellings.setdefault((provider, name), quotes)
        names = spellings(model) if provider == "bedrock" else set(_whole_names(model.match))
        if model.id.lower() in names and not model.deprecated:
            for name in _called(provider, model.id, names):
                source.models.setdefault((provider, name), quotes)
    source.match = _match_bedrock
    return source


def version_name() -> str:
    """The package's name in the `source` column.

    Raises:
        ModuleNotFoundError: genai-prices is not installed.
    """
    try:
        return f"genai-prices {importlib.metadata.version('genai-prices')}"
    except importlib.metadata.PackageNotFoundError:
        raise ModuleNotFoundError(_MISSING) from None


def listed() -> Iterator[tuple[str, Any]]:
    """Every model of the installed package that a route of `ROUTES` serves, with the name of that route.

    Raises:
        ModuleNotFoundError: genai-prices is not installed.
    """
    try:
        from genai_prices.data import providers
    except ModuleNotFoundError:
        raise ModuleNotFoundError(_MISSING) from None
    for group in providers:
        for provider in _PROVIDERS.get(group.id, ()):
            yield from ((provider, model) for model in group.models)


def spellings(model: Any) -> set[str]:
    """Every whole name of a model, in lower case."""
    return {*_whole_names(model.match), model.id.lower()}


def _whole_names(match: Any) -> Iterator[str]:
    # Claude's names on Vertex may follow a path.
    whole = getattr(match, "equals", None) or getattr(match, "ends_with", "")
    if whole and not whole.startswith("/"):
        yield whole.lower()
    for clause in getattr(match, "or_", ()):
        yield from _whole_names(clause)


def _called(provider: str, name: str, names: set[str]) -> Iterator[str]:
    """The names of a model that a call can use, without those of its dated snapshots."""
    if provider == "openrouter":
        # OpenRouter's other names of a model are routes of their own, such as the "-pro" of a model.
        others = {
            other for other in names if not other.endswith(":beta") and not SNAPSHOT.search(other, len(name))
        }
        yield from sorted(other for other in {name, *others} if "/" in other and _MODEL.fullmatch(other))
    elif ":" not in name and _MODEL.fullmatch(name) and not _OTHER_KINDS.search(name):
        own = _OWN_NAMES.get(provider)
        yield from [name] if own is None or own.match(name) else []


def _match_bedrock(key: Key) -> Quotes:
    """The quotes of a name on Bedrock, which the package recognizes by its parts.

    The package has no prices of single regions, nor of the government's.
    """
    from genai_prices.data import providers

    provider, name = key
    if provider not in _CLOUDS["aws"] or "/" in name or name.startswith("us-gov."):
        return {}
    group = next(group for group in providers if group.id == "aws")
    model = group.find_model(re.sub(r"^regional\.", "us.", name))
    return {} if model is None else _quotes(provider, model)


def _quotes(provider: str, model: Any) -> Quotes:
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
    for variant in model.price_variants or ():
        name = _VARIANTS.get(next(iter(variant.when.items()))) if len(variant.when) == 1 else None
        tiers = _price_list(variant.prices)
        if name is not None and "input" in tiers[0]:
            day = str(getattr(variant.constraint, "start_date", ""))
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
