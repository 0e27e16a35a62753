"""What a refresh changes, as a table in Markdown for a pull request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Decimal

from llm_provider._core.money.price_rows import PRICE_COLUMNS, PriceRow
from llm_provider._core.money.pricing import in_effect

_MOST_LINES = 500
"""Of a description on GitHub, which has 65,536 characters at most."""


def difference_table(before: Iterable[PriceRow], after: Iterable[PriceRow], today: str) -> str:
    """The prices of today that differ between two tables, one line for each changed cell or new row.

    Announced prices are listed with their day.
    """
    lines = list(_list_lines(_find_current(before, today), _find_current(after, today)))
    head = [
        "| model | level | from tokens | from day | price | before | now |",
        "|---|---|---|---|---|---|---|",
    ]
    rest = [f"\n{len(lines) - _MOST_LINES:,} more lines are in the difference of prices.csv."]
    shown = [*head, *lines[:_MOST_LINES], *(rest if len(lines) > _MOST_LINES else [])]
    return "\n".join(shown) + "\n" if lines else "No price differs.\n"


_Key = tuple[str, str, str, int, str]


def _find_current(rows: Iterable[PriceRow], today: str) -> dict[_Key, PriceRow]:
    lists: dict[tuple[str, str, str], list[PriceRow]] = {}
    for row in rows:
        lists.setdefault((row.provider, row.model, row.variant), []).append(row)
    found: dict[_Key, PriceRow] = {}
    for several in lists.values():
        found |= {(*row[:4], ""): row for row in in_effect(several, today)}
        found |= {(*row[:4], row.effective_from): row for row in several if row.effective_from > today}
    return found


def _list_lines(before: dict[_Key, PriceRow], after: dict[_Key, PriceRow]) -> Iterator[str]:
    for key in sorted({*before, *after}):
        old, new = before.get(key), after.get(key)
        for column in PRICE_COLUMNS:
            was, now = getattr(old, column, None), getattr(new, column, None)
            if was != now:
                provider, model, variant, size, day = key
                cells = (f"{provider}/{model}", variant, f"{size:,}", day, column, _show(was), _show(now))
                yield f"| {' | '.join(cells)} |"


def _show(price: Decimal | None) -> str:
    return "" if price is None else format(price, "f")
