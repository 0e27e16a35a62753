"""Reads the prices of the genai-prices package."""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Iterator
from typing import Any

from llm_provider._features.fresh_prices.genai_data import (
    AT_CLOUDS,
    PROVIDERS,
    add_model,
    quotes_of,
    spellings,
)
from llm_provider._features.fresh_prices.quotes import Key, Quotes

from .quotes import Source

_MISSING = "genai-prices is not installed; it is a development dependency: pip install genai-prices"


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
        quotes = quotes_of(provider, model)
        if not quotes:
            continue
        for name in spellings(model):
            source.spellings.setdefault((provider, name), quotes)
        add_model(source.models, provider, model)
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
        for provider in PROVIDERS.get(group.id, ()):
            yield from ((provider, model) for model in group.models)


def _match_bedrock(key: Key) -> Quotes:
    """The quotes of a name on Bedrock, which the package recognizes by its parts.

    The package has no prices of single regions, nor of the government's.
    """
    from genai_prices.data import providers

    provider, name = key
    if provider not in AT_CLOUDS["aws"] or "/" in name or name.startswith("us-gov."):
        return {}
    group = next(group for group in providers if group.id == "aws")
    model = group.find_model(re.sub(r"^regional\.", "us.", name))
    return {} if model is None else quotes_of(provider, model)
