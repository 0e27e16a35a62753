"""Price lists of sources and rows of a prices file, for the tests of `tools/prices`."""

import importlib.util
import json
from decimal import Decimal
from pathlib import Path

import pytest

from llm_provider._money.price_rows import PRICE_COLUMNS, PriceRow
from tools.prices import litellm_prices
from tools.prices.quotes import Cells, Quotes, Source

TODAY = "2026-11-20"
TINY = ("openai", "tiny")

needs_genai_prices = pytest.mark.skipif(
    importlib.util.find_spec("genai_prices") is None,
    reason="genai-prices is a development dependency, which not every environment has",
)


def cells(**prices: float | str) -> Cells:
    """Prices by column."""
    return {column: Decimal(str(price)) for column, price in prices.items()}


def source(name: str, quotes: Quotes, *, model: tuple[str, str] = TINY) -> Source:
    """A source that knows one model."""
    return Source(name, {model: quotes})


def flat(**prices: float | str) -> Quotes:
    """One price list without a date or tiers."""
    return {"standard": {"": {0: cells(**prices)}}}


def row(
    model: str = "tiny", start: str = "", variant: str = "standard", minimum: int = 0, **prices: float | str
) -> PriceRow:
    """A row of the prices file."""
    known = cells(**prices)
    values = (known.get(column) for column in PRICE_COLUMNS)
    return PriceRow._make(("openai", model, variant, minimum, *values, start, "old 1", "2026-01-01"))


def shown(rows: list[PriceRow]) -> list[tuple[object, ...]]:
    """What tests compare of rows."""
    return [
        (entry.variant, entry.min_input_tokens, entry.effective_from, entry.input, entry.output)
        for entry in rows
    ]


def price_map(folder: Path, **entries: dict[str, object]) -> Path:
    """litellm's price map in an installed package of version 1.2.3; `__` in a name stands for a slash."""
    package = folder / "litellm"
    package.mkdir()
    path = package / litellm_prices.FILE_NAME
    path.write_text(
        json.dumps({name.replace("__", "/"): entry for name, entry in entries.items()}), encoding="utf-8"
    )
    (folder / "litellm-1.2.3.dist-info").mkdir()
    (folder / "litellm-1.2.3.dist-info" / "METADATA").write_text(
        "Name: litellm\nVersion: 1.2.3\n", encoding="utf-8"
    )
    return path


def entry(provider: str = "openai", **values: object) -> dict[str, object]:
    """An entry of litellm's price map."""
    return {"litellm_provider": provider, "mode": "chat", "input_cost_per_token": 2e-06, **values}
