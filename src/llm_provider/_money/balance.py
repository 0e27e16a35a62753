"""The book of a budget: what was spent and what is set aside. This is that of one process.

`_budget_file` has the one that several share. Neither decides anything: `_budget` does.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from decimal import Context, Decimal
from typing import TYPE_CHECKING, NamedTuple, Protocol

from .._errors import RequestError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

EXACT = Context(prec=100)
"""Sums of prices keep all their digits: a price has 24 behind the point. The caller's context may round."""


class Balance(NamedTuple):
    """What a book says at one moment, in USD."""

    spent: Decimal
    reserved: Decimal
    uncertain: Decimal
    """The part of `spent` that the provider may not have billed."""


class BusyError(Exception):
    """Another process is writing the book at this moment."""


class BalanceTransaction(Protocol):
    """A book opened for writing; what is written counts when it is closed, all of it or nothing."""

    @property
    def balance(self) -> Balance: ...

    def claim(self, amount: Decimal) -> int:
        """Set an amount aside; returns the number of the claim."""

    def goes_first(self) -> bool:
        """Whether no other process has waited for longer."""

    def line_up(self, waiting: bool) -> None:
        """Take, keep or leave this budget's place among the processes that wait."""


class BalanceStore(Protocol):
    """Where the money is counted."""

    shared: bool
    """Whether others write too, so that one who waits has to look."""

    def open(self) -> AbstractContextManager[BalanceTransaction]:
        """Open it for writing; raises `BusyError`."""

    def end(self, claim: int, cost: Decimal | None) -> None:
        """Write down, with the next opening, what a claim came to; None is its worst case."""

    def read(self) -> Balance:
        """What it says, from any thread."""

    def close(self) -> None:
        """Write down what is left to write, and close the files."""


class MemoryBalance:
    """The book of one process.

    >>> book = MemoryBalance()
    >>> with book.open() as page:
    ...     claim = page.claim(Decimal("0.5"))
    >>> book.end(claim, Decimal("0.125"))
    >>> book.read()
    Balance(spent=Decimal('0.125'), reserved=Decimal('0.0'), uncertain=Decimal('0'))
    """

    shared = False

    def __init__(self) -> None:
        self.balance = Balance(Decimal(0), Decimal(0), Decimal(0))
        self._claims: dict[int, Decimal] = {}
        self._last = 0
        self._process = os.getpid()

    @contextlib.contextmanager
    def open(self) -> Iterator[MemoryBalance]:
        if os.getpid() != self._process:
            raise RequestError(
                "this budget was made by the process that this one was forked from, and each would spend it: "
                "give it a file to share, as in Budget(5.00, path='run.budget')"
            )
        yield self

    def claim(self, amount: Decimal) -> int:
        self._last += 1
        self._claims[self._last] = amount
        self.balance = reserved(self.balance, amount)
        return self._last

    def goes_first(self) -> bool:
        return True

    def line_up(self, waiting: bool) -> None:
        """There is no line but the budget's own."""

    def end(self, claim: int, cost: Decimal | None) -> None:
        self.balance = ended(self.balance, self._claims.pop(claim), cost)

    def read(self) -> Balance:
        return self.balance

    def close(self) -> None:
        """There is nothing to close."""


def reserved(balance: Balance, amount: Decimal) -> Balance:
    """A balance after an amount was set aside."""
    return balance._replace(reserved=EXACT.add(balance.reserved, amount))


def ended(balance: Balance, amount: Decimal, cost: Decimal | None) -> Balance:
    """A balance after a request ended, for which an amount was set aside; None counts it all."""
    spent, still_reserved, uncertain = balance
    if cost is None:
        uncertain = EXACT.add(uncertain, amount)
    return Balance(
        EXACT.add(spent, amount if cost is None else cost), EXACT.subtract(still_reserved, amount), uncertain
    )
