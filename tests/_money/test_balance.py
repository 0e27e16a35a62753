"""The balance of one process."""

from __future__ import annotations

from decimal import Decimal

import pytest

from llm_provider._money.balance import Balance, MemoryBalance

EMPTY = Balance(Decimal(0), Decimal(0), Decimal(0))


@pytest.mark.parametrize(
    ("cost", "after"),
    [
        (Decimal("0.25"), Balance(Decimal("0.25"), Decimal(0), Decimal(0))),
        (Decimal(0), EMPTY),
        (None, Balance(Decimal(2), Decimal(0), Decimal(2))),
    ],
    ids=["known", "nothing", "not known"],
)
def test_a_reserved_amount_becomes_its_cost(cost: Decimal | None, after: Balance) -> None:
    before = EMPTY.reserve(Decimal(2))
    assert before == Balance(Decimal(0), Decimal(2), Decimal(0))
    assert before.settle(Decimal(2), cost) == after


def test_a_claim_ends_once() -> None:
    store = MemoryBalance()
    with store.open() as transaction:
        first, second = transaction.claim(Decimal(1)), transaction.claim(Decimal(2))
    assert first != second
    store.end(first, None)
    with pytest.raises(KeyError):
        store.end(first, None)
    assert store.read() == Balance(Decimal(1), Decimal(2), Decimal(1))
