"""Rows of a prices file brought up to date, for any prices; golden pairs have what is added and reported."""

import csv
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from llm_provider._core.money.price_rows import AT_MOST, PRICE_COLUMNS, PriceRow
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


def test_no_figure_has_the_noise_of_a_binary_float() -> None:
    for row in PriceTable.load():
        for column in PRICE_COLUMNS:
            price = getattr(row, column)
            assert price is None or len(price.as_tuple().digits) <= 12, row


def test_the_worst_case_has_the_higher_of_two_figures_and_the_price_that_of_the_last_source() -> None:
    left = {"standard": {"": {0: {"input": Decimal(3), "output": Decimal(4)}}}}
    right = {"standard": {"": {0: {"input": Decimal(2), "output": Decimal(5)}}}}
    sources = [Source("left 1", {TINY: left}), Source("right 1", {TINY: right})]
    refreshed = refresh([], sources, TODAY)
    table = PriceTable(refreshed.rows)
    row = table.find(*TINY)
    assert row is not None
    assert (row.input, row.output, row.source) == (2, 5, "right 1")
    assert {(each.input, each.output) for each in table.applicable(*TINY)} == {(2, 5), (3, 5)}
    # The bound ends with the disagreement, also if the price stays.
    agreed = refresh(refreshed.rows, [sources[1]], TODAY)
    assert [each.variant for each in agreed.rows] == ["standard"]
    # A price of the user's own has no bound but itself.
    table.replace_rows([row._replace(input=Decimal(1))])
    assert {each.input for each in table.applicable(*TINY)} == {1}


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
            if AT_MOST in entry.variant:
                continue
            if entry.effective_from < day.isoformat():
                now = after[(*entry[:4], entry.effective_from)]
                for column in PRICE_COLUMNS:
                    assert getattr(entry, column) in (None, getattr(now, column))
        again = refresh(rows, sources, day.isoformat())
        assert again.rows == rows
        assert (again.added, again.filled, again.withdrawn) == ([], [], [])
        day += timedelta(days=step)
