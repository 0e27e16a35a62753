"""Rows of a prices file brought up to date, for any prices; golden pairs have what is added and reported."""

import csv
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from llm_provider._core.money.price_rows import PRICE_COLUMNS, PriceRow
from llm_provider._core.money.pricing import PriceTable, default_prices_path
from price_sources import TINY, TODAY
from tools.prices.refresh import Source, refresh


def test_the_disagreements_of_today_are_listed_and_what_was_kept_is_in_the_file() -> None:
    table, path = PriceTable.load(), Path(default_prices_path()).parent / "docs" / "prices-disagreements.csv"
    with path.open(encoding="utf-8", newline="") as file:
        listed = list(csv.DictReader(file))
    assert listed
    for disagreement in listed:
        key, size = (disagreement["provider"], disagreement["model"]), int(disagreement["min_input_tokens"])
        day = date.fromisoformat(TODAY)
        kept = table.find(*key, variant=disagreement["variant"], input_tokens=size, at=day)
        assert getattr(kept, disagreement["column"]) == Decimal(disagreement["kept"]), disagreement


figures = st.integers(min_value=1, max_value=3).map(Decimal)
some_cells = st.fixed_dictionaries({"input": figures}, optional={"output": figures, "cache_read": figures})
days = st.sampled_from(["", "2026-01-01", "2026-11-19", TODAY, "2026-12-01", "2027-06-01"])
lists = st.fixed_dictionaries({0: some_cells}, optional={1001: some_cells})
quoted = st.dictionaries(
    st.sampled_from(["standard", "batch"]), st.dictionaries(days, lists, min_size=1, max_size=3), max_size=2
)
two_sources = st.tuples(quoted, quoted).map(
    lambda pair: [Source("left 1", {TINY: pair[0]}), Source("right 1", {TINY: pair[1]})]
)


@settings(deadline=None)
@given(st.lists(two_sources, min_size=1, max_size=4), st.integers(min_value=0, max_value=300))
def test_past_prices_stay_and_a_second_run_changes_nothing(history: list[list[Source]], step: int) -> None:
    rows: list[PriceRow] = []
    day = date.fromisoformat(TODAY)
    for sources in history:
        before, rows = rows, refresh(rows, sources, day.isoformat()).rows
        after = {(*entry[:4], entry.effective_from): entry for entry in rows}
        for entry in before:
            if entry.effective_from < day.isoformat():
                now = after[(*entry[:4], entry.effective_from)]
                for column in PRICE_COLUMNS:
                    assert getattr(entry, column) in (None, getattr(now, column))
        again = refresh(rows, sources, day.isoformat())
        assert again.rows == rows
        assert (again.added, again.filled, again.withdrawn) == ([], [], [])
        day += timedelta(days=step)
