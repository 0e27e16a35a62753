"""One price of several: which figure is kept, and which disagreements are listed."""

from decimal import Decimal

from price_sources import TINY, TODAY, cells, flat, row, shown, source
from tools.prices.quotes import Quotes
from tools.prices.refresh import refresh


def test_of_two_figures_the_dearer_is_taken_and_both_are_listed() -> None:
    sources = [source("left 1", flat(input=1, output=9)), source("right 1", flat(input="1.5", output=9))]
    done = refresh([], sources, TODAY)
    (entry,) = done.rows
    assert (entry.input, entry.source) == (Decimal("1.5"), "left 1; right 1")
    assert done.disagreements == [(*TINY, "standard", 0, "input", ("1", "1.5"), "1.5")]


def test_the_files_figure_stays_while_a_source_has_it() -> None:
    sources = [source("left 1", flat(input=1)), source("right 1", flat(input=2))]
    old = [row(input=1)]
    done = refresh(old, sources, TODAY)
    assert done.rows == old
    assert [disagreement.kept for disagreement in done.disagreements] == ["1"]
    agreed = refresh(old, [source("left 2", flat(input=2)), sources[1]], TODAY)
    assert [entry.input for entry in agreed.rows] == [1, 2]
    assert agreed.disagreements == []


def test_a_tier_that_one_source_lacks_is_listed() -> None:
    tiered: Quotes = {"standard": {"": {0: cells(input=1), 1001: cells(input=2)}}}
    done = refresh([], [source("left 1", flat(input=1)), source("right 1", tiered)], TODAY)
    assert done.disagreements == [(*TINY, "standard", 1001, "input", ("", "2"), "2")]


def test_an_undated_list_is_the_dated_one_of_today() -> None:
    dated: Quotes = {"standard": {"": {0: cells(input=1)}, "2026-05-01": {0: cells(input=2)}}}
    done = refresh([], [source("left 1", flat(input=2, output=8)), source("right 1", dated)], TODAY)
    assert shown(done.rows) == [("standard", 0, "", 1, None), ("standard", 0, "2026-05-01", 2, 8)]


def test_a_level_without_a_price_of_its_own_never_borrows_a_cheaper_one() -> None:
    quotes: Quotes = {
        "standard": {"": {0: cells(input=2), 1001: cells(input=4)}, "2027-01-01": {0: cells(input=3)}},
        "batch": {"": {0: cells(input=1)}},
    }
    done = refresh([], [source("new 1", quotes)], TODAY)
    batch = [entry for entry in done.rows if entry.variant == "batch"]
    assert [(entry.min_input_tokens, entry.effective_from, entry.input, entry.source) for entry in batch] == [
        (0, "", 1, "new 1"),
        (0, "2027-01-01", None, "none"),
        (1001, "", None, "none"),
    ]
