"""Price lists of sources and rows of a prices file, for the tests and the golden pairs of `tools/prices`."""

import importlib.util
import json
import tempfile
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from golden import as_json
from llm_provider._core.money.price_rows import PRICE_COLUMNS, PriceRow
from llm_provider._features.fresh_prices.quotes import Cells
from tools.prices import litellm_prices
from tools.prices.quotes import Source
from tools.prices.refresh import Refreshed, refresh

TODAY = "2026-11-20"
TINY = ("openai", "tiny")

needs_genai_prices = pytest.mark.skipif(
    importlib.util.find_spec("genai_prices") is None,
    reason="genai-prices is a development dependency, which not every environment has",
)


def cells(**prices: float | str) -> Cells:
    """Prices by column."""
    return {column: Decimal(str(price)) for column, price in prices.items()}


def row(
    model: str = "tiny", start: str = "", variant: str = "standard", minimum: int = 0, **prices: float | str
) -> PriceRow:
    """A row of the prices file."""
    known = cells(**prices)
    values = (known.get(column) for column in PRICE_COLUMNS)
    return PriceRow._make(("openai", model, variant, minimum, *values, start, "old 1", "2026-01-01"))


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


NONE: Mapping[str, Any] = MappingProxyType({})


def read_map(entries: Mapping[str, Any]) -> Source:
    """litellm's price map, read on `TODAY`."""
    with tempfile.TemporaryDirectory() as folder:
        return litellm_prices.read(price_map(Path(folder), **entries), TODAY)


def list_map(entries: Mapping[str, Any]) -> dict[str, Any]:
    """The name, the quotes and the ended models that are read of the map."""
    source = read_map(entries)
    models = {"/".join(key): json.loads(json.dumps(as_json(quotes))) for key, quotes in source.models.items()}
    return {"name": source.name, "models": models, "shut_down": sorted(map("/".join, source.shut_down))}


def source(name: str, models: Mapping[str, Any]) -> Source:
    """A source with quotes of OpenAI's models; a model without quotes is shut down."""
    read = Source(name, shut_down={("openai", model) for model in models if not models[model]})
    for model, quotes in models.items():
        read.models["openai", model] = {
            variant: {day: {int(size): cells(**lists[size]) for size in lists} for day, lists in days.items()}
            for variant, days in quotes.items()
        }
    return read


def refresh_rows(
    sources: Mapping[str, Any] = NONE,
    rows: Sequence[Mapping[str, Any]] = (),
    today: str = TODAY,
    litellm: Mapping[str, Any] = NONE,
) -> dict[str, Any]:
    """The new rows of a file, without blank cells, and the changes that are reported."""
    read = [source(name, models) for name, models in sources.items()]
    read += [read_map(litellm)] if litellm else []
    done = refresh([row(**each) for each in rows], read, today)
    shown: dict[str, Any] = {}
    for name in Refreshed.__slots__:
        listed = as_json(getattr(done, name))
        if name != "unlisted":
            listed = [{column: value for column, value in each.items() if value} for each in listed]
        if name != "rows":
            listed.sort(key=str)  # Service levels come in any order.
        if listed:
            shown[name] = listed
    return shown
