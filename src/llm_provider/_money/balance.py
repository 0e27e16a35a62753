"""The balance of a budget: the money that is spent and the money that is reserved.

`BalanceStore` keeps a balance. `MemoryBalance` is the store of one process, `balance_file` the store that
several processes share. A store decides nothing: `budget` does.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from decimal import Decimal
from typing import TYPE_CHECKING, NamedTuple, Protocol

from .._errors import RequestError
from .._runtime.exact_decimal import exact

if TYPE_CHECKING:
    from contextlib import AbstractContextManager


class Balance(NamedTuple):
    """The state of a budget at one moment, in USD."""

    spent: Decimal
    reserved: Decimal
    uncertain: Decimal
    """The part of `spent` that the provider may not have billed."""


class BusyError(Exception):
    """Another process is writing the balance at this moment."""


class BalanceTransaction(Protocol):
    """Changes to a balance. All of them take effect when the transaction ends, or none."""

    @property
    def balance(self) -> Balance: ...

    def claim(self, amount: Decimal) -> int:
        """Reserve an amount; returns the number of the claim."""

    def is_next(self) -> bool:
        """Whether no other process has waited longer than this one."""

    def set_waiting(self, waiting: bool) -> None:
        """Take, keep or leave this budget's place in the queue of processes that wait for money."""


class BalanceStore(Protocol):
    """Where a balance is kept."""

    shared: bool
    """Whether other processes write too, so that a waiting process has to poll."""

    def open(self) -> AbstractContextManager[BalanceTransaction]:
        """Begin a transaction; raises `BusyError`."""

    def end(self, claim: int, cost: Decimal | None) -> None:
        """Replace a claim by its cost, with the next transaction; None stands for the claimed amount."""

    def read(self) -> Balance:
        """The balance; from any thread."""

    def close(self) -> None:
        """Write what is still unwritten, and close the files."""


class MemoryBalance:
    """The balance of one process.

    >>> store = MemoryBalance()
    >>> with store.open() as transaction:
    ...     claim = transaction.claim(Decimal("0.5"))
    >>> store.end(claim, Decimal("0.125"))
    >>> store.read()
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
                "this budget was made by the parent of this forked process, and both would spend all of it: "
                "give it a file to share, as in Budget(5.00, path='run.budget')"
            )
        yield self

    def claim(self, amount: Decimal) -> int:
        self._last += 1
        self._claims[self._last] = amount
        self.balance = reserved(self.balance, amount)
        return self._last

    def is_next(self) -> bool:
        return True

    def set_waiting(self, waiting: bool) -> None:
        """Do nothing: no other process waits for this balance."""

    def end(self, claim: int, cost: Decimal | None) -> None:
        self.balance = ended(self.balance, self._claims.pop(claim), cost)

    def read(self) -> Balance:
        return self.balance

    def close(self) -> None:
        """Do nothing: there is no file."""


def reserved(balance: Balance, amount: Decimal) -> Balance:
    """The balance after an amount was reserved."""
    return balance._replace(reserved=exact().add(balance.reserved, amount))


def ended(balance: Balance, amount: Decimal, cost: Decimal | None) -> Balance:
    """The balance after a request ended.

    Args:
        balance: The balance before.
        amount: USD that were reserved for the request.
        cost: USD that it cost; None where that is unknown, which counts the whole amount.
    """
    add, (spent, still_reserved, uncertain) = exact().add, balance
    if cost is None:
        cost, uncertain = amount, add(uncertain, amount)
    return Balance(add(spent, cost), exact().subtract(still_reserved, amount), uncertain)
