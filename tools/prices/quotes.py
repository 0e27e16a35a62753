"""The prices of a source, in the columns of `prices.csv`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TypeAlias

from llm_provider._core.money.price_rows import PART_OF
from llm_provider._core.runtime.exact_decimal import without_noise

Cells: TypeAlias = dict[str, Decimal]
"""Price column → price, in the units of that column."""

PriceList: TypeAlias = dict[int, Cells]
"""`min_input_tokens` → prices of prompts from that size on."""

Quotes: TypeAlias = dict[str, dict[str, PriceList]]
"""Variant → `effective_from` → price list; "" where the source gives no start date."""

Key: TypeAlias = tuple[str, str]
"""A provider and a model, named as `prices.csv` names them."""


@dataclass(slots=True)
class Source:
    """One source, read completely.

    Attributes:
        name: Its name and version in the `source` column.
        models: The quotes of each model that it lists as available.
        spellings: The quotes by every name of a model in lower case, aliases included.
        shut_down: The models that it lists as shut down.
        match: The quotes of a name that the source recognizes by its parts, for other names.
    """

    name: str
    models: dict[Key, Quotes] = field(default_factory=dict)
    spellings: dict[Key, Quotes] = field(default_factory=dict)
    shut_down: set[Key] = field(default_factory=set)
    match: Callable[[Key], Quotes] = lambda key: {}

    def quotes(self, key: Key) -> Quotes:
        """The quotes of a model under this name; empty where the source has none."""
        return self.models.get(key) or self.spellings.get((key[0], key[1].lower())) or self.match(key)


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


def keep_complete_levels(sources: Mapping[str, Quotes]) -> dict[str, Quotes]:
    """The service levels with a price of every kind of input and output that a standard level prices apart.

    A blank would price images and sound as text.

    >>> audio = {"input": Decimal(2), "input_audio": Decimal(9)}
    >>> levels = {"standard": {"": {0: audio}}, "flex": {"": {0: {"input": Decimal(1)}}}}
    >>> list(keep_complete_levels({"a source": levels})["a source"])
    ['standard']
    """
    standard = [tiers[0] for quotes in sources.values() for tiers in quotes.get("standard", {}).values()]
    needed = {column for cells in standard for column in cells if column in PART_OF} - {"output_reasoning"}
    return {
        name: {
            variant: days
            for variant, days in quotes.items()
            if variant == "standard" or all(needed <= tiers[0].keys() for tiers in days.values())
        }
        for name, quotes in sources.items()
    }


def plain(price: Decimal) -> Decimal:
    """The price without zeros at its end, never in scientific notation, with the digits that were meant.

    >>> plain(Decimal("1E+1")), plain(Decimal("0.250")), plain(Decimal("0.8000000000000001"))
    (Decimal('10'), Decimal('0.25'), Decimal('0.8'))
    """
    return Decimal(format(without_noise(price).normalize(), "f"))


SNAPSHOT = re.compile(r"-\d{4}-\d{2}-\d{2}|[-@]\d{8}")
"""The end of a dated snapshot's name, after the name of its family."""
