"""The prices that a source gives for a model, in the columns of `prices.csv`."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TypeAlias

from ..._core.money.price_rows import PART_OF
from ..._core.runtime.exact_decimal import without_noise

Cells: TypeAlias = dict[str, Decimal]
"""Price column → price, in the units of that column."""

PriceList: TypeAlias = dict[int, Cells]
"""`min_input_tokens` → prices of prompts from that size on."""

Quotes: TypeAlias = dict[str, dict[str, PriceList]]
"""Variant → `effective_from` → price list; "" where the source gives no start date."""

Key: TypeAlias = tuple[str, str]
"""A provider and a model, named as `prices.csv` names them."""


SNAPSHOT = re.compile(r"-\d{4}-\d{2}-\d{2}|[-@]\d{8}")
"""The end of a dated snapshot's name, after the name of its family."""

DECISIONS = {
    ("mistral", "mistral-large-latest"): "litellm",
    ("mistral", "mistral-medium"): "litellm",
    ("xai", "grok-code-fast"): "genai-prices",
    ("xai", "grok-code-fast-1-0825"): "genai-prices",
}
"""Models whose prices one source alone tells; tools/prices/README.md has the reasons."""

_BEDROCK_PROFILE = re.compile(r"(apac|eu|jp|us-gov)\.")
"""Profiles that litellm lists one by one. genai-prices gives all of them the price of `us.`."""


def usable(cells: Cells) -> Cells:
    """The cells from which a cost can be computed.

    A cell is left out if it repeats the price of the token class that it is part of. So is a price of writing
    to the cache below that of plain input: it is either a fee for storage in addition to the input or a
    mistake, and the sources do not say which.

    >>> usable({"output": Decimal(2), "output_reasoning": Decimal(2), "output_audio": Decimal(9)})
    {'output': Decimal('2'), 'output_audio': Decimal('9')}
    >>> usable({"input": Decimal(2), "cache_write": Decimal(1)})
    {'input': Decimal('2')}
    """
    return {
        column: price
        for column, price in cells.items()
        if price != cells.get(PART_OF.get(column, ("",))[0])
        and not (column.startswith("cache_write") and price < cells.get("input", 0))
    }


def plain(price: Decimal) -> Decimal:
    """The price without zeros at its end, never in scientific notation, with the digits that were meant.

    >>> plain(Decimal("1E+1")), plain(Decimal("0.250")), plain(Decimal("0.8000000000000001"))
    (Decimal('10'), Decimal('0.25'), Decimal('0.8'))
    """
    return Decimal(format(without_noise(price).normalize(), "f"))


def find_decision(key: Key) -> str:
    """The source that alone has the prices of a model; empty where each figure is chosen by itself."""
    listed = key[0] == "bedrock" and _BEDROCK_PROFILE.match(key[1])
    return "litellm" if listed else DECISIONS.get(key, "")
