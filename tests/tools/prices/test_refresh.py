"""Rows of a prices file brought up to date: what is added, filled in, kept and reported."""

import csv
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from llm_provider._money.price_rows import PRICE_COLUMNS, PriceRow
from llm_provider._money.pricing import PriceTable, default_prices_path
from price_sources import TINY, TODAY, cells, flat, row, shown, source
from tools.prices.quotes import PriceList, Quotes
from tools.prices.refresh import Refreshed, Source, refresh


def test_a_new_model_comes_with_its_history_and_what_is_announced() -> None:
    dated: dict[str, PriceList] = {
        "": {0: cells(input=1, output=2)},
        "2026-03-01": {0: cells(input=2, output=4), 1001: cells(input=4, output=8)},
        "2027-01-01": {0: cells(input=3, output=6)},
    }
    done = refresh([], [source("new 1", {"standard": dated})], TODAY)
    assert shown(done.rows) == [
        ("standard", 0, "", 1, 2),
        ("standard", 0, "2026-03-01", 2, 4),
        ("standard", 0, "2027-01-01", 3, 6),
        ("standard", 1001, "2026-03-01", 4, 8),
    ]
    assert done.added == sorted(done.rows, key=lambda entry: entry.effective_from)
    assert {(entry.source, entry.as_of) for entry in done.rows} == {("new 1", TODAY)}


def test_a_change_adds_a_row_of_today_and_keeps_the_old() -> None:
    old = [row(input=1, output=2)]
    assert refresh(old, [source("new 2", flat(input=1, output=2))], TODAY) == Refreshed(rows=old)
    done = refresh(old, [source("new 2", flat(input=1, output=3))], TODAY)
    assert shown(done.rows) == [("standard", 0, "", 1, 2), ("standard", 0, TODAY, 1, 3)]
    assert done.rows[0] is old[0]
    assert done.added == done.rows[1:]


def test_a_change_begins_on_the_day_that_the_source_tells() -> None:
    quotes: Quotes = {"standard": {"": {0: cells(input=1)}, "2026-11-02": {0: cells(input=3)}}}
    done = refresh([row(input=1)], [source("new 2", quotes)], TODAY)
    assert [(entry.effective_from, entry.input) for entry in done.rows] == [("", 1), ("2026-11-02", 3)]


def test_a_tier_that_comes_or_goes_is_a_change() -> None:
    tiered: Quotes = {"standard": {"": {0: cells(input=1), 1001: cells(input=2)}}}
    done = refresh([row(input=1)], [source("new 2", tiered)], TODAY)
    rows = [(entry.min_input_tokens, entry.effective_from) for entry in done.rows]
    assert rows == [(0, ""), (0, TODAY), (1001, TODAY)]
    back = refresh(done.rows, [source("new 3", flat(input=1))], "2026-12-24")
    assert [(entry.min_input_tokens, entry.effective_from) for entry in back.added] == [(0, "2026-12-24")]


def test_a_blank_cell_is_filled_in_place_and_a_silent_source_takes_nothing_away() -> None:
    old = [row(input=1, cache_read="0.1")]
    done = refresh(old, [source("new 2", flat(input=1, output=2))], TODAY)
    (entry,) = done.rows
    assert (entry.input, entry.cache_read, entry.output) == (1, Decimal("0.1"), 2)
    assert (entry.source, entry.as_of, entry.effective_from) == ("new 2; old 1", TODAY, "")
    assert (done.added, done.filled) == ([], [entry])


def test_what_is_announced_may_change_until_its_day() -> None:
    def announced(price: float) -> list[Source]:
        later = {"": {0: cells(input=1)}, "2027-01-01": {0: cells(input=price)}}
        return [source("new 2", {"standard": later})]

    first = refresh([row(input=1)], announced(5), TODAY)
    second = refresh(first.rows, announced(6), "2026-12-01")
    assert [entry.input for entry in second.rows] == [1, 6]
    assert second.added == [second.rows[1]]
    third = refresh(second.rows, [source("new 3", flat(input=1))], "2026-12-02")
    assert [entry.input for entry in third.rows] == [1]
    assert third.withdrawn == [second.rows[1]]
    begun = refresh(second.rows, announced(6), "2027-01-02")
    assert begun.rows == second.rows


def test_a_past_that_differs_is_reported_and_left() -> None:
    old = [row(input=1), row(start="2026-05-01", input=2)]
    quotes: Quotes = {"standard": {"2026-02-01": {0: cells(input=9)}, "2026-05-01": {0: cells(input=2)}}}
    done = refresh(old, [source("new 2", quotes)], TODAY)
    assert done.rows == old
    assert done.past == [(*TINY, "standard", "2026-02-01")]


def test_a_model_that_no_source_has_stays() -> None:
    old = [row(input=1), row("other", input=4)]
    done = refresh(old, [source("new 2", flat(input=1))], TODAY)
    assert done.rows == sorted(old, key=lambda entry: entry.model)
    assert done.unlisted == [("openai", "other")]


def test_a_snapshot_has_rows_only_where_it_costs_otherwise() -> None:
    source = Source("new 1")
    source.models = {
        ("openai", "tiny"): flat(input=1),
        ("openai", "tiny-2026-01-01"): flat(input=1),
        ("openai", "tiny-20260201"): flat(input=2),
        ("openai", "lonely-2026-01-01"): flat(input=3),
    }
    done = refresh([], [source], TODAY)
    assert [entry.model for entry in done.rows] == ["lonely-2026-01-01", "tiny", "tiny-20260201"]


def test_a_model_that_one_source_calls_shut_down_is_not_added() -> None:
    gone = Source("other 1", shut_down={TINY})
    assert refresh([], [source("new 1", flat(input=1)), gone], TODAY).rows == []
    old = [row(input=1)]
    assert refresh(old, [gone], TODAY).rows == old


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


# For any prices of the sources

figures = st.integers(min_value=1, max_value=3).map(Decimal)
some_cells = st.fixed_dictionaries({"input": figures}, optional={"output": figures, "cache_read": figures})
days = st.sampled_from(["", "2026-01-01", "2026-11-19", TODAY, "2026-12-01", "2027-06-01"])
lists = st.fixed_dictionaries({0: some_cells}, optional={1001: some_cells})
quoted = st.dictionaries(
    st.sampled_from(["standard", "batch"]), st.dictionaries(days, lists, min_size=1, max_size=3), max_size=2
)
two_sources = st.tuples(quoted, quoted).map(
    lambda pair: [source("left 1", pair[0]), source("right 1", pair[1])]
)


@settings(deadline=None)
@given(st.lists(two_sources, min_size=1, max_size=4), st.integers(min_value=0, max_value=300))
def test_no_past_price_is_ever_changed_and_a_second_run_changes_nothing(
    history: list[list[Source]], step: int
) -> None:
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
