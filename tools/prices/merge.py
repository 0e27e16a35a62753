"""Combines the prices that several sources give for a model, and lists the figures on which they disagree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from llm_provider._core.money.price_rows import CLOUDS
from llm_provider._features.fresh_prices.quotes import Cells, Key, PriceList, find_decision

from .quotes import Source, keep_complete_levels

NOT_PUBLISHED = "none"
"""The `source` of a row without prices, which keeps a cheaper row from being applied."""


class Disagreement(NamedTuple):
    """The figures of the sources for one cell of today's price list; blank where a source has none."""

    provider: str
    model: str
    variant: str
    min_input_tokens: int
    column: str
    figures: tuple[str, ...]
    kept: str


@dataclass(slots=True)
class Tier:
    """One new row: its prices, and the sources that have at least one of them.

    `highest` has the highest figure of each column if one is higher than that of `cells`.
    """

    cells: Cells = field(default_factory=dict)
    sources: set[str] = field(default_factory=set)
    highest: Tier | None = None

    @property
    def source(self) -> str:
        """The cell in the column `source`."""
        return "; ".join(sorted(self.sources)) or NOT_PUBLISHED


Dated: TypeAlias = dict[str, dict[int, Tier]]
"""`effective_from` → `min_input_tokens` → row."""


def newest(days: Iterable[str], limit: str) -> str | None:
    """The last day that is not after `limit`; "" precedes every other day.

    >>> newest(["2026-11-21", "", "2026-11-20"], "2026-11-20"), newest(["", "2026-11-21"], "2026-11-20")
    ('2026-11-20', '')
    >>> newest(["2026-11-21"], "2026-11-20")
    """
    return max((day for day in days if day <= limit), default=None)


def merge(
    key: Key, sources: Sequence[Source], today: str, others: Iterable[str] = ()
) -> tuple[dict[str, Dated], list[Disagreement]]:
    """Combine the price lists of a model, by variant.

    Of two figures of today, that of the last source counts, except where `DECISIONS` names another one.
    Past and announced lists are those of the first source that has them.

    Args:
        key: The model.
        sources: All sources, in the order in which `Disagreement` lists their figures.
        today: The day (UTC), as "2026-11-20".
        others: Variants that only the file has.
    """
    variants: dict[str, Dated] = {}
    disagreements: list[Disagreement] = []
    told = {source.name: source.quotes(key) for source in sources}
    if key[0] in CLOUDS:
        told = keep_complete_levels(told)
    for variant in sorted({variant for quotes in told.values() for variant in quotes}):
        lists = {name: quotes[variant] for name, quotes in told.items() if variant in quotes}
        dated = variants[variant] = _past_and_announced(lists, today)
        current: dict[str, PriceList] = {}
        for name, days in lists.items():
            day = newest(days, today)
            if day is not None:
                current[name] = days[day]
        if current:
            start = max(newest(lists[name], today) or "" for name in current)
            dated[start], found = _agreed(current, find_decision(key))
            disagreements += [
                Disagreement(
                    *key, variant, *cell, tuple(figures.get(source.name, "") for source in sources), kept
                )
                for cell, figures, kept in found
            ]
    _add_not_published(variants, today, others)
    return variants, disagreements


def _past_and_announced(lists: Mapping[str, Mapping[str, PriceList]], today: str) -> Dated:
    dated: Dated = {}
    for name, days in lists.items():
        for day, tiers in days.items():
            if day != newest(days, today) and day not in dated:
                dated[day] = {minimum: Tier(dict(cells), {name}) for minimum, cells in tiers.items()}
    return dated


def _agreed(
    lists: Mapping[str, PriceList], decision: str
) -> tuple[dict[int, Tier], list[tuple[tuple[int, str], dict[str, str], str]]]:
    """One price list of several, and the cells on which they disagree."""
    agreed: dict[int, Tier] = {}
    differing = []
    alone = next((name for name in lists if decision and name.startswith(decision)), None)
    for minimum in sorted({minimum for tiers in lists.values() for minimum in tiers}):
        tier, most = Tier(), Tier()
        rows = {name: tiers.get(minimum) for name, tiers in lists.items()}
        for column in dict.fromkeys(column for cells in rows.values() for column in cells or ()):
            figures = {name: cells[column] for name, cells in rows.items() if cells and column in cells}
            kept = figures.get(alone) if alone else list(figures.values())[-1]
            most.cells[column] = max(figures.values())
            most.sources |= {name for name, price in figures.items() if price == most.cells[column]}
            if kept is not None:
                tier.cells[column] = kept
                tier.sources |= {name for name, price in figures.items() if price == kept}
            # A source without this column has no opinion; a source without the whole tier says there is none.
            if len(set(figures.values())) > 1 or (column == "input" and None in rows.values()):
                shown = {name: format(price, "f") for name, price in figures.items()}
                applies = agreed[0].cells.get(column) if kept is None and agreed else kept
                differing.append(((minimum, column), shown, "" if applies is None else format(applies, "f")))
        # Prompts of a size without a price of its own have that of shorter ones.
        usual = agreed.setdefault(minimum, tier) if tier.cells else agreed[0]
        before = usual.highest or usual
        if any(price > before.cells.get(column, 0) for column, price in most.cells.items()):
            cells = {c: max(p, before.cells.get(c, p)) for c, p in most.cells.items()}
            usual.highest = Tier({**before.cells, **cells}, most.sources)
    return agreed, differing


def _add_not_published(variants: dict[str, Dated], today: str, others: Iterable[str]) -> None:
    """Add rows without prices where a row of other prompts would otherwise apply to a variant.

    This happens where the standard price rises at a prompt size and the variant's price is unknown there, and
    where a standard price is announced without the variant's.
    """
    standard = variants.get("standard", {})
    for variant in {*variants, *others} - {"standard"}:
        dated = variants.setdefault(variant, {})
        for day, tiers in dated.items():
            in_effect = newest(standard, day or today)
            for minimum in standard.get(in_effect, ()) if in_effect is not None else ():
                tiers.setdefault(minimum, Tier())
        for day in standard:
            if day > today:
                dated.setdefault(day, {0: Tier()})
        if not dated:
            del variants[variant]
