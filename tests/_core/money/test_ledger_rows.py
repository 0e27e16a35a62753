"""One row of a ledger."""

from decimal import Decimal

from llm_provider import Ledger, LedgerRow, Usage
from llm_provider._core.money.ledger_rows import row_of
from llm_provider._core.money.totals import COUNTS, Key

ALL = Key("", "", "", "")


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
