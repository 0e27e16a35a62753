"""A price that changed: what was bought before costs what it cost then, also in reconcile and in evidence."""

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from llm_provider import Client, Usage
from llm_provider._core.money.ledger_file import LedgerFile
from llm_provider._core.money.pricing import PriceTable
from llm_provider._core.money.totals import Key, Posting
from llm_provider._features.evidence.verification import _price_usage
from llm_provider._features.fresh_prices.changes import list_changes
from llm_provider._features.reconcile.reconciliation import list_lines, reconcile
from llm_provider._features.reconcile.usage_reports import Entry
from price_sources import TINY, TODAY, cells, row
from tools.prices.__main__ import rows_text

DAYS = ("2026-10-20", TODAY)
PRICES = {DAYS[0]: Decimal(2), TODAY: Decimal(3)}
USAGE = Usage(input_tokens=1_000_000)


def seconds(day: str) -> float:
    return datetime.fromisoformat(f"{day}T12:00:00").replace(tzinfo=UTC).timestamp()


@pytest.fixture
def rows() -> list[tuple[object, ...]]:
    """A table with one price, and the change of it that an update finds."""
    table = PriceTable([row(input=2, output=4)])
    quotes = {TINY: {"standard": {"": {0: cells(input=3, output=4)}}}}
    table.replace_rows(list(list_changes(table, {"litellm 9": quotes}, TODAY)))
    return list(table)


@pytest.mark.parametrize("day", DAYS)
def test_each_day_has_its_price(rows: list, day: str, tmp_path: Path) -> None:  # type: ignore[type-arg]
    path, table = tmp_path / "prices.csv", PriceTable(rows)
    path.write_text(rows_text(rows))
    with Client(prices=path) as client:
        assert client.price("openai/tiny", USAGE, at=date.fromisoformat(day)) == PRICES[day]
    priced = {"provider": "openai", "model": "tiny", "variant": "standard", "at": seconds(day)}
    assert _price_usage(USAGE, priced, table) == PRICES[day]


def test_a_report_over_both_prices_agrees_with_the_ledger(rows: list, tmp_path: Path) -> None:  # type: ignore[type-arg]
    file, key = LedgerFile(tmp_path / "ledger.jsonl"), Key("openai", "tiny", "tiny", "")
    entries = []
    for day, usd in PRICES.items():
        file.append(Posting(seconds(day), "answered", key, usd, USAGE, None))
        counts = {"input_tokens": USAGE.input_tokens}
        entries.append(Entry("usage", "openai", day, "tiny", counts=counts, requests=1))
        entries.append(Entry("cost", "openai", day, "tiny", usd=usd))
    file.close()
    lines = list_lines([tmp_path / "ledger.jsonl"])
    compared = reconcile(lines, entries, PriceTable(rows), days=DAYS, border=0, by_key=False)
    assert [each.unexplained for each in compared] == [0] * 4
    assert {each.name.day: each.usd for each in compared if each.name.measure == "usage"} == {
        day: [usd, usd] for day, usd in PRICES.items()
    }
