"""How much models read and write at most: the table. Golden pairs have names of models and bad rows."""

from llm_provider._core.money.pricing import PriceTable, find_table
from llm_provider._core.tokens.model_limits import read
from llm_provider._features.clouds.price_names import drop_region


def test_the_shipped_table_is_good_and_sorted() -> None:
    rows = list(read(find_table("model_limits.csv")))
    assert len(rows) > 500
    assert rows == sorted(rows)
    assert set(rows) <= {(row.provider, drop_region(row.provider, row.model)) for row in PriceTable.load()}
