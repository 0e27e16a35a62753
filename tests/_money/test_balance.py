"""The book of one process."""

from __future__ import annotations

from decimal import Decimal

import pytest

from llm_provider._money.balance import Balance, MemoryBalance, ended, reserved

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
def test_what_was_set_aside_becomes_what_was_spent(cost: Decimal | None, after: Balance) -> None:
    before = reserved(EMPTY, Decimal(2))
    assert before == Balance(Decimal(0), Decimal(2), Decimal(0))
    assert ended(before, Decimal(2), cost) == after


def test_a_claim_ends_once() -> None:
    book = MemoryBalance()
    with book.open() as page:
        first, second = page.claim(Decimal(1)), page.claim(Decimal(2))
    assert first != second
    book.end(first, None)
    with pytest.raises(KeyError):
        book.end(first, None)
    assert book.read() == Balance(Decimal(1), Decimal(2), Decimal(1))
