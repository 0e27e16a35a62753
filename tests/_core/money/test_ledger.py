"""The class that users read. Its table and its figure are tested with `ledger_views`."""

from decimal import Decimal

import pytest

from llm_provider import Ledger, LedgerRow, RequestError, Usage
from llm_provider._core.money.totals import COUNTS, Key, Posting, Totals, row_of

ALL = Key("", "", "", "")


def test_the_sums_of_all_rows(ledger: Ledger) -> None:
    amounts = [str(amount) for amount in (ledger.spent, ledger.wasted, ledger.saved)]
    assert amounts == ["0.01620006", "0.001", "0.0054"]
    assert ledger.cost == Decimal("0.01720006")
    assert (ledger.requests, ledger.hits, ledger.failed, ledger.unknown) == (4, 1, 2, 1)
    assert ledger.unknown_at_most == Decimal("0.5")
    assert ledger.usage == Usage(
        input_tokens=3611, output_tokens=900, cache_read_input_tokens=600, reasoning_output_tokens=300
    )


def test_rows_can_be_summed_by_some_names(ledger: Ledger) -> None:
    assert [row.model for row in ledger] == ["claude-haiku-5-5", "gpt-6.1-sol"]
    (haiku, sol) = ledger.rows("tag")
    assert (haiku.tag, haiku.model, sol.tag, sol.model) == ("", "", "ablation", "")
    assert sol.spent == Decimal("0.0162")
    with pytest.raises(RequestError, match="not by colour"):
        ledger.rows("model", "colour")


def test_a_ledger_counts_on_and_one_without_a_bound_leaves_no_sum(ledger: Ledger, totals: Totals) -> None:
    before = ledger.spent
    totals.post(Posting(1.79e9, "answered", Key("xai", "m", "m", ""), Decimal(1)))
    assert (ledger.spent, len(ledger.rows())) == (before + 1, 3)
    totals.post(Posting(0.0, "answered", Key("anthropic", "claude-haiku-5-5", "claude-haiku-5-5", ""), None))
    assert (ledger.unknown, ledger.unknown_at_most) == (2, None)
    assert [row.unknown_at_most for row in ledger.rows()] == [None, Decimal("0.5"), 0]


def test_a_row_of_nothing_is_zero() -> None:
    row = row_of(ALL, [])
    assert (row.requests, row.usage, row.spent, row.unknown_at_most) == (0, Usage(), 0, 0)
    assert isinstance(row.spent, Decimal)


def test_as_a_dict_it_has_every_field_with_the_counts_one_by_one(ledger: Ledger) -> None:
    (_, sol) = ledger.rows()
    values = sol.as_dict()
    fields = [name for name in LedgerRow.__dataclass_fields__ if name != "usage"]
    assert set(values) == {*fields, *COUNTS}
    assert set(sol.dollars()) == {"spent", "wasted", "saved", "unknown_at_most"}
    assert (values["tag"], values["requests"], values["spent"]) == ("ablation", 3, Decimal("0.0162"))
    assert Usage(**{name: values[name] for name in COUNTS}) == sol.usage
