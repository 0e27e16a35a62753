"""Brings the rows of `prices.csv` up to date: adds rows, fills in blank cells, and changes no past price.

The sources are genai-prices, a development dependency, and litellm's price map, read as a file. Figures on
which they disagree are listed. README.md has the rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from llm_provider._core.money.price_rows import AT_MOST, PRICE_COLUMNS, PriceRow
from llm_provider._core.money.pricing import list_keys
from llm_provider._features.fresh_prices.quotes import Key

from .merge import NOT_PUBLISHED, Dated, Disagreement, Tier, merge, newest
from .quotes import Source

_OldModel: TypeAlias = dict[str, dict[str, dict[int, PriceRow]]]
"""The rows of a model by variant, `effective_from` and `min_input_tokens`."""

__all__ = ["Disagreement", "PastPrice", "Refreshed", "Source", "refresh"]


class PastPrice(NamedTuple):
    """A past price list that differs between a source and the file. The file's rows stay."""

    provider: str
    model: str
    variant: str
    effective_from: str


@dataclass(slots=True)
class Refreshed:
    """The rows of the new file, sorted, and the changes to report.

    Attributes:
        rows: All rows.
        added: Rows with a new provider, model, variant, prompt size or day.
        filled: Rows in which blank cells were filled in.
        withdrawn: Rows of a future day that no source announces any longer.
        disagreements: Cells of today's price lists on which the sources disagree.
        past: Past price lists that differ from the file's.
        unlisted: Models of the file that no source has. Their rows stay.
    """

    rows: list[PriceRow] = field(default_factory=list)
    added: list[PriceRow] = field(default_factory=list)
    filled: list[PriceRow] = field(default_factory=list)
    withdrawn: list[PriceRow] = field(default_factory=list)
    disagreements: list[Disagreement] = field(default_factory=list)
    past: list[PastPrice] = field(default_factory=list)
    unlisted: list[Key] = field(default_factory=list)


def refresh(rows: Iterable[PriceRow], sources: Sequence[Source], today: str) -> Refreshed:
    """Bring the rows of a prices file up to date.

    A price list that still holds stays, and its blank cells are filled in. A price list that has changed
    stays too, and a new one begins on the day that its source gives, else today. A second refresh with the
    same sources changes nothing. Rows that only bound a cost follow from the sources of today alone.

    Args:
        rows: The valid rows of the file.
        sources: All sources, in the order in which `Disagreement` lists their figures.
        today: The day (UTC), as "2026-11-20".
    """
    old: dict[Key, _OldModel] = {}
    bounds = {}
    for row in rows:
        if row.variant.endswith(AT_MOST):
            bounds[row._replace(source="", as_of="")] = row
            continue
        variants = old.setdefault((row.provider, row.model), {})
        variants.setdefault(row.variant, {}).setdefault(row.effective_from, {})[row.min_input_tokens] = row
    refreshed = Refreshed()
    for key in sorted({*old, *_new_models(old, sources)}):
        had = old.get(key, {})
        if not any(source.quotes(key) for source in sources):
            refreshed.unlisted.append(key)
        told, disagreements = merge(key, sources, today, had)
        refreshed.disagreements += disagreements
        for variant in {*had, *told}:
            lists = _Lists(key, variant, had.get(variant, {}), today, refreshed)
            lists.revise(told.get(variant, {}))
            for row in lists.list_bounds(told.get(variant, {})):
                refreshed.rows.append(bounds.get(row._replace(source="", as_of=""), row))
    refreshed.rows.sort(key=lambda row: (*row[:4], row.effective_from))
    return refreshed


def _new_models(old: Iterable[Key], sources: Sequence[Source]) -> set[Key]:
    """Models that the file lacks, without those that cost what the table answers for them anyway.

    These are dated snapshots with the price of their family, and regions of a cloud with that of a wider one.
    """
    gone = {key for source in sources for key in source.shut_down}
    listed = {key for source in sources for key in source.models} - gone

    known = listed | set(old)

    def is_new(key: Key) -> bool:
        family = next((other for other in list_keys(*key) if other != key and other in known), None)
        if family is None:
            return True
        return any(source.quotes(key) not in ({}, source.quotes(family)) for source in sources)

    return {key for key in listed - set(old) if is_new(key)}


class _Lists:
    """The price lists of one model and variant, from the old file to the new one."""

    def __init__(
        self, key: Key, variant: str, old: dict[str, dict[int, PriceRow]], today: str, refreshed: Refreshed
    ) -> None:
        self._key = key
        self._variant = variant
        self._old = old
        self._today = today
        self._refreshed = refreshed
        # Lists that have begun stay. Lists of a future day stay only if a source still announces them.
        self._new = {day: dict(tiers) for day, tiers in old.items() if day <= today}

    def revise(self, told: Dated) -> None:
        """Update the lists with those of the sources."""
        if not told:
            self._new = self._old
        current = newest(told, self._today)
        for day in sorted(told):
            if not self._old or day > self._today:
                self._begin(day, told[day])
            elif day == current:
                self._continue(day, told[day])
            else:
                self._compare(day, told[day])
        kept = [row for tiers in self._new.values() for row in tiers.values()]
        self._refreshed.rows += kept
        gone = {row for tiers in self._old.values() for row in tiers.values()} - set(kept)
        days = {(row.effective_from, row.min_input_tokens) for row in kept}
        self._refreshed.withdrawn += [
            row for row in gone if (row.effective_from, row.min_input_tokens) not in days
        ]

    def list_bounds(self, told: Dated) -> Iterator[PriceRow]:
        """Rows with the highest figures of the sources, for the list in effect."""
        day, current = newest(self._new, self._today), newest(told, self._today)
        if day is None or current is None:
            return
        for minimum, tier in told[current].items():
            if tier.highest:
                row = self._row(minimum, day, tier.highest)
                yield row._replace(variant=f"{self._variant}{AT_MOST}")

    def _continue(self, day: str, tiers: dict[int, Tier]) -> None:
        """Keep the list in effect if the sources' list equals it; else begin a new one."""
        in_effect = newest(self._new, self._today)
        if in_effect is None or not _holds(self._new[in_effect], tiers):
            self._begin(day if in_effect is None or day > in_effect else self._today, tiers)
        else:
            self._fill(in_effect, tiers)

    def _compare(self, day: str, tiers: dict[int, Tier]) -> None:
        """Report a past list that differs from the file's; add it where the file has none."""
        in_effect = newest(self._old, day)
        if in_effect is None:
            self._begin(day, tiers)
        elif not _holds(self._old[in_effect], tiers):
            self._refreshed.past.append(PastPrice(*self._key, self._variant, day))

    def _begin(self, day: str, tiers: dict[int, Tier]) -> None:
        before = newest(self._new, day)
        if before is not None and before != day and _holds(self._new[before], tiers, exactly=True):
            return
        announced = self._old.get(day, {})
        if announced and _holds(announced, tiers):
            self._new[day] = dict(announced)
            self._fill(day, tiers)
            return
        self._new[day] = {minimum: self._row(minimum, day, tier) for minimum, tier in tiers.items()}
        self._refreshed.added += self._new[day].values()

    def _fill(self, day: str, tiers: dict[int, Tier]) -> None:
        """Fill in blank cells of the list of a day."""
        for minimum, row in self._new[day].items():
            tier = tiers.get(minimum, Tier())
            blank = {column: price for column, price in tier.cells.items() if getattr(row, column) is None}
            if blank:
                sources = {*row.source.split("; "), *tier.sources} - {NOT_PUBLISHED}
                changes: dict[str, Any] = {
                    **blank,
                    "source": "; ".join(sorted(sources)),
                    "as_of": self._today,
                }
                filled = row._replace(**changes)
                self._new[day][minimum] = filled
                self._refreshed.filled.append(filled)

    def _row(self, minimum: int, day: str, tier: Tier) -> PriceRow:
        prices = (tier.cells.get(column) for column in PRICE_COLUMNS)
        return PriceRow._make((*self._key, self._variant, minimum, *prices, day, tier.source, self._today))


def _holds(rows: Mapping[int, PriceRow], tiers: Mapping[int, Tier], *, exactly: bool = False) -> bool:
    """Whether a price list of the file equals one of the sources, in the cells for which both have figures.

    With `exactly`, cells that only one of them has count as different. Rows without prices never count.
    """
    priced = {minimum for minimum, row in rows.items() if row.source != NOT_PUBLISHED}
    if not priced <= set(tiers) <= set(rows):
        return False
    for minimum, row in rows.items():
        cells = tiers[minimum].cells if minimum in tiers else {}
        for column in PRICE_COLUMNS:
            had, told = getattr(row, column), cells.get(column)
            if had != told and (exactly or (had is not None and told is not None)):
                return False
    return True
