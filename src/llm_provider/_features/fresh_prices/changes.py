"""The prices of sources that differ from a table, as rows that replace rows of the table.

A changed price is a new list of rows from its day on; past lists stay. Of two figures that of genai-prices
counts, and the higher one bounds a budget: the rules of tools/prices/README.md. Announced prices, and the
regions that `make prices` derives, come with the next version of the package.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..._core.money.price_rows import AT_MOST, PRICE_COLUMNS, PriceRow
from ..._core.money.pricing import PriceTable, in_effect
from .quotes import Cells, Key, Quotes, find_decision

GENAI, LITELLM = "genai-prices", "litellm"


def list_changes(
    table: PriceTable, sources: Mapping[str, Mapping[Key, Quotes]], today: str
) -> Iterator[PriceRow]:
    """All rows of each model and service level that a source prices otherwise than the table.

    The sources are named as in the column `source`, such as "litellm 1.110.2".
    """
    # Of two figures, the last source's counts.
    names = sorted(sources, key=lambda name: name.startswith(GENAI))
    for key in sorted({key for models in sources.values() for key in models}):
        decision = find_decision(key)
        quotes = {
            name: sources[name][key] for name in names if key in sources[name] and name.startswith(decision)
        }
        listed_as = table.find_key(*key)
        rows = table.list_rows(*key)
        for variant in sorted({variant for each in quotes.values() for variant in each}):
            quoted = {name: each[variant] for name, each in quotes.items() if variant in each}
            had = [row for row in rows if row.variant == variant]
            yield from _revise(key, variant, quoted, had, today, listed=listed_as == key)


def _revise(
    key: Key, variant: str, quoted: Mapping[str, Any], had: list[PriceRow], today: str, *, listed: bool
) -> Iterator[PriceRow]:
    """The rows of a service level, if its price list of today is not the table's."""
    current = in_effect(had, today)
    held = {row.min_input_tokens: row for row in current}
    # What genai-prices has is not changed by litellm alone.
    if any(GENAI in row.source for row in current):
        quoted = {name: days for name, days in quoted.items() if name.startswith(GENAI)}
    start, sizes, highest = "", dict[int, Cells](), dict[int, Cells]()
    for days in quoted.values():
        begun = [day for day in days if day <= today]
        if begun:
            start = max(start, *begun)
            for size, cells in days[max(begun)].items():
                most = highest.setdefault(size, {})
                most |= {column: max(price, most.get(column, price)) for column, price in cells.items()}
                sizes.setdefault(size, {}).update(cells)
    holds = all(
        size in held and getattr(held[size], column) == price
        for size, cells in sizes.items()
        for column, price in cells.items()
    )
    if holds or 0 not in sizes:
        return
    before = had if listed else []
    if before and start <= current[0].effective_from:
        start = today
    for size in sorted({*sizes, *(held if before else ())}):
        row = held.get(size) if before else None
        cells = {} if row is None else {name: getattr(row, name) for name in PRICE_COLUMNS}
        cells |= sizes.get(size, {})
        values = [cells.get(column) for column in PRICE_COLUMNS]
        made = PriceRow._make((*key, variant, size, *values, start, "; ".join(sorted(quoted)), today))
        before = [each for each in before if each[:4] != made[:4] or each.effective_from != start]
        yield made
        if any(price > cells[column] for column, price in highest.get(size, {}).items()):
            bound: dict[str, Any] = {**cells, **highest[size]}
            yield made._replace(variant=f"{variant}{AT_MOST}", **bound)
    yield from before
