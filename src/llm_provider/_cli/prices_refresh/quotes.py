"""What a source says about prices, in the columns of `prices.csv`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TypeAlias

from ..._money.price_rows import PART_OF

Cells: TypeAlias = dict[str, Decimal]
"""Price column → price, in the units of that column."""

PriceList: TypeAlias = dict[int, Cells]
"""`min_input_tokens` → prices of prompts from that size on."""

Quotes: TypeAlias = dict[str, dict[str, PriceList]]
"""Variant → `effective_from` → price list; "" is the start of a list whose beginning is not told."""

Key: TypeAlias = tuple[str, str]
"""A provider and a model, named as `prices.csv` names them."""


@dataclass(slots=True)
class Source:
    """One source, read completely.

    Attributes:
        name: what the `source` column calls it, with its version.
        models: the quotes of each model that it says can be called.
        spellings: quotes by every whole name it knows for a model, in lower case: aliases too.
        shut_down: models that it says are gone.
    """

    name: str
    models: dict[Key, Quotes] = field(default_factory=dict)
    spellings: dict[Key, Quotes] = field(default_factory=dict)
    shut_down: set[Key] = field(default_factory=set)

    def quotes(self, key: Key) -> Quotes:
        """What it says about a model under that very name; empty if nothing."""
        return self.models.get(key) or self.spellings.get((key[0], key[1].lower()), {})


def usable(cells: Cells) -> Cells:
    """The cells that can be billed by.

    Left out are those that repeat what the tokens cost anyway, and writing to the cache for less than plain
    input: that is either a fee for storage on top of it or a mistake, and the sources do not tell which.

    >>> usable({"output": Decimal(2), "output_reasoning": Decimal(2), "output_audio": Decimal(9)})
    {'output': Decimal('2'), 'output_audio': Decimal('9')}
    >>> usable({"input": Decimal(2), "cache_write": Decimal(1)})
    {'input': Decimal('2')}
    """
    return {
        column: price
        for column, price in cells.items()
        if price != cells.get(PART_OF.get(column, ""))
        and not (column.startswith("cache_write") and price < cells.get("input", 0))
    }


def plain(price: Decimal) -> Decimal:
    """The same price without zeros at its end, and never in scientific notation.

    >>> plain(Decimal("1E+1")), plain(Decimal("0.250"))
    (Decimal('10'), Decimal('0.25'))
    """
    return Decimal(format(price.normalize(), "f"))


SNAPSHOT = re.compile(r"-\d{4}-\d{2}-\d{2}|[-@]\d{8}")
"""What follows a family's name in the name of a dated snapshot."""
