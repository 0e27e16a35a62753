"""The rows by which sources change a table, for any prices, and those of the installed packages."""

import importlib.util
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from llm_provider._core.money.price_rows import PriceRow
from llm_provider._core.money.pricing import PriceTable
from llm_provider._features.fresh_prices import genai_data, litellm_map
from llm_provider._features.fresh_prices.changes import list_changes
from llm_provider._features.fresh_prices.quotes import Key, Quotes
from price_sources import TINY, TODAY, cells, needs_genai_prices, row

BEFORE = date(2026, 11, 19)


def quotes(start: str = "", **prices: float) -> dict[Key, Quotes]:
    return {TINY: {"standard": {start: {0: cells(**prices)}}}}


def changed(old: list[PriceRow], **sources: dict[Key, Quotes]) -> PriceTable:
    """The table with the changes of sources, which are "litellm" or "genai"."""
    names = {"litellm": "litellm 9", "genai": "genai-prices 9"}
    table = PriceTable(old)
    told = {names[name]: models for name, models in sources.items()}
    table.replace_rows(list(list_changes(table, told, TODAY)))
    assert list(list_changes(table, told, TODAY)) == []
    return table


def price(table: PriceTable, at: date | None = None) -> tuple[object, object]:
    found = table.find(*TINY, at=at or date.fromisoformat(TODAY))
    assert found is not None
    return found.input, found.source


def test_a_changed_price_begins_on_its_day_and_the_past_stays() -> None:
    table = changed([row(input=1, output=2)], litellm=quotes(input=3, output=2))
    assert (price(table), price(table, BEFORE)) == ((3, "litellm 9"), (1, "old 1"))
    table = changed([row(input=1, output=2)], genai=quotes("2026-11-19", input=3, output=2))
    assert (price(table)[0], price(table, BEFORE)[0], price(table, date(2026, 11, 18))[0]) == (3, 3, 1)


def test_what_holds_is_no_change_and_a_blank_is_no_opinion() -> None:
    table = changed([row(input=1, output=2, cache_read=1)], litellm=quotes(input=1, output=2))
    assert (price(table), len(table)) == ((1, "old 1"), 1)
    table = changed([row(input=1)], litellm=quotes(input=1, output=2))
    found = table.find(*TINY, at=date.fromisoformat(TODAY))
    assert found is not None
    assert (found.input, found.output) == (1, 2)


def test_of_two_figures_that_of_genai_prices_counts_and_the_higher_bounds() -> None:
    table = changed([], litellm=quotes(input=5, output=2), genai=quotes(input=4, output=3))
    assert price(table) == (4, "genai-prices 9; litellm 9")
    assert {(each.input, each.output) for each in table.applicable(*TINY)} == {(4, 3), (5, 3)}


def test_litellm_alone_does_not_change_what_genai_prices_has() -> None:
    old = [row(input=1)._replace(source="genai-prices 1; litellm 1")]
    assert price(changed(old, litellm=quotes(input=2))) == (1, old[0].source)
    assert price(changed(old, genai=quotes(input=2)))[0] == 2


def test_a_model_with_the_price_of_its_family_needs_no_row() -> None:
    dated = ("openai", "tiny-2026-01-01")
    same, other = ({dated: quotes(input=value)[TINY]} for value in (1, 2))
    assert len(changed([row(input=1)], litellm=same)) == 1
    table = changed([row(input=1)], litellm=other)
    found = table.find(*dated)
    assert found is not None
    assert (found.model, found.input, price(table)[0]) == ("tiny-2026-01-01", 2, 1)


@pytest.mark.long
@needs_genai_prices
def test_the_shipped_table_has_what_the_packages_have() -> None:
    """Beside models that have shut down, and regions that only `make prices` derives."""
    specs = [importlib.util.find_spec(name) for name in ("genai_prices", "litellm")]
    if specs[1] is None:
        pytest.skip("needs litellm")
    genai, litellm = (Path(str(spec and spec.origin)) for spec in specs)
    sources = {
        "genai-prices 9": genai_data.read_models(genai.with_name("data.py")),
        "litellm 9": litellm_map.read_models(litellm.with_name(litellm_map.FILE_NAME), TODAY),
    }
    table = PriceTable.load()
    rows = list(list_changes(table, sources, TODAY))
    assert len({each[:2] for each in rows}) < 60
    assert Decimal(0) not in {each.input for each in rows}
